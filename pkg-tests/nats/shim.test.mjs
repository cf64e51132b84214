// The shim over NATS, as a program sees it that knows NATS and JSON-RPC and nothing of crablet.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "@nats-io/transport-node";
import { startNats } from "../lib/nats-server.mjs";
import { call, exchange, failureOf, ledger, request, startNatsShim, stopping, temporaryFolder } from "./support.mjs";

const LIMIT = { timeout: 60_000 };

async function world(t, { config, shims = 1, flags } = {}) {
  const server = await stopping(t, startNats({ config }));
  const where = await temporaryFolder(t);
  const running = [];
  for (let number = 1; number <= shims; number += 1) {
    running.push(await stopping(t, startNatsShim({ url: server.url, where, name: `shim${number}`, flags })));
  }
  const connection = await connect({ servers: server.url });
  t.after(() => connection.close());
  const ask = async (subject, body) => (await connection.request(subject, body, LIMIT)).json();
  const text = async (subject, body) => {
    const answer = await ask(subject, body);
    return answer.result?.content?.[0]?.text ?? answer;
  };
  return { server, where, shims: running, connection, ask, text };
}

test("a plain request is answered by one message, whatever era the server speaks", async (t) => {
  const { ask, text } = await world(t);
  for (const subject of ["mcp.stateless", "mcp.handshake"]) {
    const { id, result } = await ask(subject, request("a", "tools/list"));
    assert.equal(id, "a");
    assert.ok(result.tools.some(({ name }) => name === "mark"));
    assert.equal(await text(subject, call(7, "mark", { n: 1 })), "marked 1");
    const { error } = await ask(subject, request(1, "no/such"));
    assert.equal(error.code, -32601);
  }
  assert.equal((await ask("mcp.stateless", "{")).error.code, -32700);
});

test("calls spread over the shims of a queue group, each done once", async (t) => {
  const { text } = await world(t, { shims: 2 });
  const pids = new Set();
  for (let n = 0; n < 200 && pids.size < 2; n += 1) pids.add(await text("mcp.stateless", call(n, "pid")));
  assert.equal(pids.size, 2);
});

test("NATS's own tools find the services and their numbers", async (t) => {
  const { connection, text } = await world(t, { shims: 2 });
  await text("mcp.stateless", call(1, "mark", { n: 1 }));
  const asked = async (subject, least) => {
    const found = [];
    for await (const message of await connection.requestMany(subject, "", {
      strategy: "count",
      maxMessages: least,
      maxWait: 20_000,
    })) {
      found.push(message.json());
    }
    return found;
  };
  const pings = await asked("$SRV.PING", 4);
  assert.deepEqual(pings.map(({ name }) => name).sort(), ["handshake", "handshake", "stateless", "stateless"]);
  const [info] = await asked("$SRV.INFO.stateless", 1);
  assert.match(info.version, /^\d+\.\d+\.\d+/);
  const subjects = Object.fromEntries(info.endpoints.map((endpoint) => [endpoint.name, endpoint]));
  assert.equal(subjects.stateless.subject, "mcp.stateless");
  assert.equal(subjects["stateless-stream"].subject, "mcp.stateless.stream");
  assert.equal(subjects.stateless.queue_group, "crablet-shim");
  const stats = await asked("$SRV.STATS.stateless", 2);
  const requests = stats.flatMap(({ endpoints }) => endpoints).map((endpoint) => endpoint.num_requests);
  assert.equal(
    requests.reduce((sum, count) => sum + count),
    1,
  );
});

test("progress comes before the answer, and signs of life while there is nothing else", async (t) => {
  const { connection, text } = await world(t);
  for (const name of ["stateless", "handshake"]) {
    const seen = [];
    const params = { name: "progress", arguments: {}, _meta: { progressToken: "p" } };
    for await (const { event, body } of exchange(connection, `mcp.${name}.stream`, request(1, "tools/call", params))) {
      seen.push(event === "message" ? body.params.progress : event || body.result.content[0].text);
      // The answer waits for this: what was seen before did not come with it.
      if (event === "alive") await text(`mcp.${name}`, call(2, "go"));
      if (event === "") break;
    }
    assert.deepEqual(
      seen.filter((one) => one !== "alive"),
      [1, 2, "done"],
    );
    assert.ok(seen.includes("alive"));
  }
});

test("a call is cancelled by its reply subject, and by a caller that is gone", async (t) => {
  const { connection, text } = await world(t);
  const until = async (name, count) => {
    while ((await text(`mcp.${name}`, call(1, "cancelled"))) !== String(count)) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  for (const name of ["stateless", "handshake"]) {
    let ended = false;
    for await (const { reply, event } of exchange(connection, `mcp.${name}.stream`, call(1, "hang"))) {
      if (event === "alive") connection.publish(`mcp.${name}.cancel`, reply);
      if (event === "end") {
        ended = true;
        break;
      }
    }
    assert.ok(ended);
    await until(name, 1);
    for await (const { event } of exchange(connection, `mcp.${name}.stream`, call(2, "hang"))) {
      if (event === "alive") break;
    }
    await until(name, 2);
  }
});

test("a session stays with one shim through subjects of its own, and says when it is over", async (t) => {
  const { connection, ask, text } = await world(t, { shims: 2 });
  const params = {
    protocolVersion: "2025-11-25",
    capabilities: { elicitation: {} },
    clientInfo: { name: "c", version: "1" },
  };
  const opened = await connection.request("mcp.handshake", request(1, "initialize", params), LIMIT);
  assert.equal(opened.json().result.serverInfo.name, "handshake");
  const session = opened.headers.get("Crablet-Session");
  assert.match(session, /^mcp\.handshake\.session\.[0-9a-f]{32}$/);
  connection.publish(`${session}.call`, JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }));
  // One process, so that it counts.
  for (let n = 1; n <= 5; n += 1) assert.equal(await text(`${session}.call`, call(n, "count")), String(n));

  // What it asks and tells comes too.
  const told = exchange(connection, `${session}.listen`, "");
  const first = told.next();
  for await (const { event, body } of exchange(connection, `${session}.stream`, call(10, "ask"))) {
    if (event === "message") {
      const answer = { jsonrpc: "2.0", id: body.id, result: { action: "accept", content: { name: "Ada" } } };
      connection.publish(`${session}.call`, JSON.stringify(answer));
    }
    if (event === "") {
      assert.equal(body.result.content[0].text, "hello Ada");
      break;
    }
  }
  await text(`${session}.call`, call(11, "change"));
  let said = (await first).value;
  while (said.event === "alive") said = (await told.next()).value;
  assert.equal(said.body.method, "notifications/tools/list_changed");
  await told.return();

  // Who takes one message only is asked nothing.
  assert.equal(await text(`${session}.call`, call(12, "ask")), "hello undefined");

  connection.publish(`${session}.end`);
  await assert.rejects(async () => {
    for (;;) await ask(`${session}.call`, call(13, "count"));
  }, /no responders|-32001|TypeError/i);
});

test("a server that is stateful is served in sessions only", async (t) => {
  const { ask } = await world(t, { flags: ["--nats-stateful", "handshake"] });
  const { error } = await ask("mcp.handshake", call(1, "count"));
  assert.equal(error.code, -32601);
  assert.match(error.message, /initialize/);
});

test("an answer above the limit of NATS is an error that names the limit", async (t) => {
  const { text } = await world(t, { config: "max_payload: 8192" });
  assert.equal((await text("mcp.stateless", call(1, "big", { bytes: 4096 }))).length, 4096);
  const { error } = await text("mcp.stateless", call(2, "big", { bytes: 9000 }));
  assert.match(error.message, /at most 8192 .*max_payload/);
});

test("a shim that is told to end leaves the group first and finishes what it works on", async (t) => {
  const { text, shims, connection, where } = await world(t);
  const file = join(where, "gate");
  const slow = text("mcp.stateless", call(1, "gate", { file }));
  while ((await ledger(where)).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  const stopped = shims[0].stop();
  // Nobody is in the group any more while the call is still at work.
  for (let left = ""; !/no responders/i.test(left); ) {
    // One that comes just while the shim leaves may be lost, as docs/nats.md says: it is not waited for.
    left = await connection.request("mcp.stateless", call(3, "pid"), { timeout: 1_000 }).then(() => "", String);
  }
  await writeFile(file, "");
  assert.equal(await slow, "through");
  await stopped;
});

test("only what was named is served, and mistakes are told", async (t) => {
  const server = await stopping(t, startNats());
  const where = await temporaryFolder(t);
  const failure = (...flags) => failureOf(startNatsShim({ url: server.url, where, flags }));
  assert.match(await failure("--nats-server", "other"), /"other".* has: handshake, stateless/);
  assert.match(await failure("--nats-prefix", "a..b"), /prefix/);
  assert.match(await failureOf(startNatsShim({ url: "nats://me:secret@127.0.0.1:1", where })), /--nats-creds/);
  assert.match(
    await failureOf(startNatsShim({ url: "nats://127.0.0.1:1", where })),
    /no connection to the NATS server/,
  );
});
