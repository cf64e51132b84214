// `crablet/nats` of the packed package: through shims, and to a service that speaks in its own way.
import assert from "node:assert/strict";
import { test } from "node:test";
import { headers } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { mcp } from "crablet";
import { nats } from "crablet/nats";
import { startNats } from "../lib/nats-server.mjs";
import { ledger, servedBy, startNatsShim, stopping, temporaryFolder } from "./support.mjs";

const text = ({ content }) => content[0].text;

async function world(t, { config, shims = 1, flags } = {}) {
  const server = await stopping(t, startNats({ config }));
  const where = await temporaryFolder(t);
  const running = [];
  const startShim = async (name) => {
    const shim = await stopping(t, startNatsShim({ url: server.url, where, name, flags }));
    running.push(shim);
    return shim;
  };
  for (let number = 1; number <= shims; number += 1) await startShim(`shim${number}`);
  const connection = await connect({ servers: server.url });
  t.after(() => connection.close());
  const open = async (options) => {
    const client = await mcp.connect(nats({ connection, ...options }));
    t.after(() => client.close());
    return client;
  };
  return { server, where, shims: running, startShim, connection, open };
}

test("servers of both eras are found out and called, with progress while it happens", async (t) => {
  const { open } = await world(t);
  for (const server of ["stateless", "handshake"]) {
    const client = await open({ server });
    assert.ok((await client.tools()).some(({ name }) => name === "mark"));
    const seen = [];
    let released;
    const result = await client.callTool(
      "progress",
      {},
      {
        onProgress({ progress }) {
          seen.push(progress);
          // The call ends because of this one, so that its progress was there before its answer.
          if (progress === 2) released = client.callTool("go", {});
        },
      },
    );
    await released;
    assert.deepEqual([text(result), seen], ["done", [1, 2]]);
  }
});

test("aborting a call cancels it at the server", async (t) => {
  const { open } = await world(t);
  for (const options of [{ server: "stateless" }, { server: "handshake", era: "handshake" }]) {
    const client = await open(options);
    const controller = new AbortController();
    const hanging = client.callTool("hang", {}, { signal: controller.signal });
    // A later call of the same connection: the first has reached the server.
    await client.callTool("pid", {});
    controller.abort();
    await assert.rejects(hanging, { name: "AbortError" });
    while (text(await client.callTool("cancelled", {})) !== "1") {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
});

test("a session keeps to its process, may ask, and is replaced when its shim is gone", async (t) => {
  const events = [];
  const { connection, open, shims, startShim } = await world(t, { flags: ["--nats-stateful", "handshake"] });
  const client = await open({
    server: "handshake",
    elicitation: { form: () => ({ action: "accept", content: { name: "Ada" } }) },
    onEvent: (event) => events.push(event),
  });
  for (let n = 1; n <= 3; n += 1) assert.equal(text(await client.callTool("count", {})), String(n));
  assert.equal(text(await client.callTool("ask", {})), "hello Ada");
  await client.callTool("change", {});
  while (!events.some(({ type }) => type === "tools-changed")) await new Promise((resolve) => setTimeout(resolve, 20));

  await startShim("other");
  await shims[0].kill();
  await servedBy(connection, "handshake", 1);
  // Nobody had this call, so that it is done in a new session; one that was at work would have failed.
  assert.equal(text(await client.callTool("count", {})), "1");
  assert.ok(events.some(({ type, message }) => type === "warning" && /forgot the session/.test(message)));
});

test("a session outlasts a time without any shim", async (t) => {
  const { connection, open, shims, startShim } = await world(t);
  const client = await open({ server: "handshake", era: "handshake" });
  assert.equal(text(await client.callTool("count", {})), "1");
  await shims[0].kill();
  await servedBy(connection, "handshake", 0);
  for (let time = 0; time < 2; time += 1) await assert.rejects(client.callTool("count", {}), { kind: "network" });
  await startShim("other");
  assert.equal(text(await client.callTool("count", {})), "1");
});

/** What is at work in a shim when that is killed, and another serves on. */
async function killedAtWork(t, options, names) {
  const events = [];
  const { open, shims, startShim, where } = await world(t);
  const client = await open({ silenceMs: 3_000, onEvent: (event) => events.push(event), ...options });
  await client.tools();
  const calls = names.map((name, n) => client.callTool(name, { n, milliseconds: 60_000 }));
  const ended = Promise.allSettled(calls);
  while ((await ledger(where)).length < names.length) await new Promise((resolve) => setTimeout(resolve, 20));
  await startShim("other");
  await shims[0].kill();
  const again = names.filter((name) => name === "read" || name === "set").length;
  while ((await ledger(where)).length < names.length + again) await new Promise((resolve) => setTimeout(resolve, 20));
  return { client, where, ended, events };
}

for (const options of [{ server: "stateless" }, { server: "handshake", era: "handshake" }]) {
  test(`a call whose shim is killed is sent again if its tool says that this does no harm: ${options.server}`, async (t) => {
    const names = ["mark", "add", "read", "set"];
    const { ended, events, where } = await killedAtWork(t, options, names);
    // Those that wait now are with the other shim: each of them is there twice, and those that say nothing are there once.
    assert.deepEqual((await ledger(where)).sort(), [0, 1, 2, 2, 3, 3]);
    const warned = events.filter(({ type, message }) => type === "warning" && /called again/.test(message));
    assert.deepEqual(warned.map(({ message }) => /call of (\w+) had no answer/.exec(message)[1]).sort(), [
      "read",
      "set",
    ]);
    const outcomes = await ended;
    for (const { status, reason } of outcomes.slice(0, 2)) {
      assert.deepEqual([status, reason?.kind, reason?.retryable], ["rejected", "connection-closed", false]);
      assert.match(reason.message, /no sign of life for 3000 ms.* not known/);
    }
    assert.deepEqual(
      outcomes.slice(2).map(({ value }) => value && text(value)),
      ["marked 2", "marked 3"],
    );
  });
}

test("what nobody serves and what is too large says so, with its kind", async (t) => {
  const { open } = await world(t, { config: "max_payload: 8192" });
  await assert.rejects(open({ server: "none" }), (error) => {
    assert.deepEqual([error.kind, error.retryable], ["network", true]);
    assert.match(error.message, /nobody serves mcp\.none over NATS \(no responders\)/);
    return true;
  });
  const tooLarge = (message) => (error) => {
    assert.deepEqual([error.kind, error.retryable], ["limit", false]);
    assert.match(error.message, message);
    return true;
  };
  for (const options of [{ server: "stateless" }, { server: "handshake", era: "handshake" }]) {
    const client = await open({
      ...options,
      elicitation: { form: () => ({ action: "accept", content: { name: "x".repeat(9_000) } }) },
    });
    const request = /the request has \d+ bytes.*at most 8192 .*max_payload.* Nothing was sent/;
    await assert.rejects(client.callTool("mark", { text: "x".repeat(9_000) }), tooLarge(request));
    await assert.rejects(
      client.callTool("big", { bytes: 9_000 }),
      tooLarge(/the answer has \d+ bytes.*at most 8192 .*max_payload/),
    );
    // The server is told, in place of the answer that it waits for.
    if (options.era) assert.equal(text(await client.callTool("ask", {})), "hello undefined");
    assert.equal(text(await client.callTool("big", { bytes: 4_096 })).length, 4_096);
  }
  assert.throws(() => nats({ server: "x" }), { kind: "invalid-input" });
  assert.throws(() => nats({ connection: {}, server: "x", subject: "y" }), { kind: "invalid-input" });
});

test("what this user may not do is told at once", async (t) => {
  const config = `authorization { users = [
    { user: all, password: p }
    { user: some, password: p, permissions: { publish: ["other.>"], subscribe: ["_INBOX_some.>"] } } ] }`;
  const server = await stopping(t, startNats({ config }));
  const connection = await connect({ servers: server.url, user: "some", pass: "p" });
  t.after(() => connection.close());
  const open = (options) => mcp.connect(nats({ connection, server: "files", ...options }));
  const refused = (message) => (error) => {
    assert.deepEqual([error.kind, error.retryable], ["auth", false]);
    assert.match(error.message, message);
    return true;
  };
  await assert.rejects(
    open({ inboxPrefix: "_INBOX_some" }),
    refused(/publish to mcp\.files\.stream.*nothing was done/),
  );
  await assert.rejects(open({ prefix: "other" }), refused(/listen to _INBOX\..*inboxPrefix/));
});

test("a closed connection ends what waits", async (t) => {
  const { server, open } = await world(t);
  const own = await connect({ servers: server.url });
  const client = await open({ connection: own, server: "stateless" });
  const hanging = client.callTool("hang", {});
  await client.callTool("pid", {});
  await own.close();
  const isClosed = ({ kind, message }) => kind === "connection-closed" && /closed/.test(message);
  await assert.rejects(hanging, isClosed);
  await assert.rejects(client.callTool("pid", {}), isClosed);
});

test("a plain service that is silent, refuses or answers nonsense fails with its kind", async (t) => {
  const { connection, open } = await world(t, { shims: 0 });
  const answers = { silent: () => {}, nonsense: (message) => message.respond("no JSON") };
  answers.refuses = (message) => {
    const refusal = headers();
    refusal.set("Nats-Service-Error", "not today");
    refusal.set("Nats-Service-Error-Code", "409");
    message.respond("", { headers: refusal });
  };
  for (const [name, callback] of Object.entries(answers))
    connection.subscribe(`plain.${name}`, { callback: (_error, message) => callback(message) });
  const fails = async (name, expected) => {
    const opening = open({ subject: `plain.${name}`, stream: false, silenceMs: 1_000, era: "handshake" });
    await assert.rejects(opening, expected);
  };
  await fails("silent", { kind: "timeout", retryable: true });
  await fails("refuses", { kind: "server", code: "409", retryable: true });
  await fails("nonsense", { kind: "protocol", retryable: false });
});

/** The shape of YiemAgent: a callable of a method, a tool's name and its arguments, with answers whose ids are fixed. */
const callable = {
  encode({ method, params }) {
    switch (method) {
      case "initialize":
        return {
          answer: {
            protocolVersion: "2025-11-25",
            capabilities: { tools: {} },
            serverInfo: { name: "lab", version: "1" },
          },
        };
      case "tools/list":
        return JSON.stringify({ method, cursor: params?.cursor });
      case "tools/call":
        return JSON.stringify({ method, name: params.name, args: params.arguments });
      default:
        return method?.startsWith("notifications/")
          ? undefined
          : { error: { code: -32601, message: `${method} is not there` } };
    }
  },
  decode: (body) => JSON.parse(new TextDecoder().decode(body)),
};

test("a service that speaks in its own way is reached through an envelope", async (t) => {
  const { connection, open } = await world(t, { shims: 0 });
  const seen = [];
  connection.subscribe("lab.tools", {
    callback(_error, message) {
      const asked = message.json();
      seen.push(asked.method);
      const tools = (name) => [{ name, description: "", inputSchema: { type: "object" } }];
      if (asked.method === "tools/list" && asked.cursor === undefined) {
        message.respond(JSON.stringify({ jsonrpc: "2.0", id: 1, result: { tools: tools("weigh"), nextCursor: "2" } }));
      } else if (asked.method === "tools/list") {
        message.respond(JSON.stringify({ jsonrpc: "2.0", id: 1, result: { tools: tools("mix") } }));
      } else if (asked.name === "weigh") {
        const content = [{ type: "text", text: `${asked.args.grams} g` }];
        message.respond(JSON.stringify({ jsonrpc: "2.0", id: 2, result: { content } }));
      } else {
        message.respond(JSON.stringify({ jsonrpc: "2.0", id: 2, error: { code: -32602, message: "no such tool" } }));
      }
    },
  });
  const client = await open({ subject: "lab.tools", envelope: callable, era: "handshake" });
  assert.deepEqual(
    (await client.tools()).map(({ name }) => name),
    ["weigh", "mix"],
  );
  const both = await Promise.all([client.callTool("weigh", { grams: 1 }), client.callTool("weigh", { grams: 2 })]);
  assert.deepEqual(both.map(text), ["1 g", "2 g"]);
  await assert.rejects(client.callTool("mix", {}), { kind: "rpc", code: "-32602" });
  assert.deepEqual(seen, ["tools/list", "tools/list", "tools/call", "tools/call", "tools/call"]);
});

test("a service that takes plain JSON-RPC and answers once needs no shim", async (t) => {
  const { connection, open } = await world(t, { shims: 0 });
  const { McpServer, serverTool } = await import("crablet/server");
  const add = serverTool({ description: "Adds", input: { type: "object" }, execute: ({ a, b }) => String(a + b) });
  const server = new McpServer({ name: "plain", version: "1", tools: { add } });
  connection.subscribe("plain.tools", {
    callback(_error, message) {
      const [ours, theirs] = mcp.pair();
      server.connect(theirs);
      ours.addEventListener("message", ({ data }) => message.respond(JSON.stringify(data)));
      ours.postMessage(message.json());
    },
  });
  const client = await open({ subject: "plain.tools", stream: false });
  assert.equal(text(await client.callTool("add", { a: 1, b: 2 })), "3");
  await assert.rejects(open({ subject: "plain.tools", stream: true, silenceMs: 1_000 }), { kind: "network" });
});
