// `crablet/nats` of the packed package: through shims, and to a service that speaks in its own way.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "@nats-io/transport-node";
import { mcp } from "crablet";
import { nats } from "crablet/nats";
import { startNats } from "../lib/nats-server.mjs";
import { servedBy, startNatsShim, stopping, temporaryFolder } from "./support.mjs";

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
  assert.ok(events.some(({ type, data }) => type === "log" && /session was lost/.test(String(data))));
});

test("a call whose shim is killed fails with what is known of it, and is not sent again", async (t) => {
  const { open, shims, startShim, where } = await world(t);
  const client = await open({ server: "stateless", silenceMs: 3_000 });
  const marked = client.callTool("mark", { n: 1, milliseconds: 60_000 });
  const { ledger } = await import("./support.mjs");
  while ((await ledger(where)).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  await startShim("other");
  await shims[0].kill();
  await assert.rejects(marked, ({ kind, message }) => {
    assert.equal(kind, "rpc");
    assert.match(message, /no sign of life for 3000 ms.* not known.* not sent again/);
    return true;
  });
  // The other shim serves, and did not get the call.
  assert.equal(text(await client.callTool("mark", { n: 2 })), "marked 2");
  assert.deepEqual(await ledger(where), [1, 2]);
});

test("what nobody serves and what is too large says so", async (t) => {
  const { open } = await world(t, { config: "max_payload: 8192" });
  await assert.rejects(open({ server: "none" }), /nobody serves mcp\.none over NATS \(no responders\)/);
  const client = await open({ server: "stateless" });
  await assert.rejects(
    client.callTool("mark", { text: "x".repeat(9_000) }),
    /at most 8192 .*max_payload.* Nothing was sent/,
  );
  await assert.rejects(client.callTool("big", { bytes: 9_000 }), /at most 8192 .*max_payload/);
  assert.throws(() => nats({ server: "x" }), { kind: "invalid-input" });
  assert.throws(() => nats({ connection: {}, server: "x", subject: "y" }), { kind: "invalid-input" });
});

test("a closed connection ends what waits", async (t) => {
  const { server, open } = await world(t);
  const own = await connect({ servers: server.url });
  const client = await open({ connection: own, server: "stateless" });
  const hanging = client.callTool("hang", {});
  await client.callTool("pid", {});
  await own.close();
  await assert.rejects(hanging, /NATS connection is closed/);
  await assert.rejects(client.callTool("pid", {}), /not sent over NATS|closed/);
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
  await assert.rejects(open({ subject: "plain.tools", stream: true, silenceMs: 1_000 }), /no responders/);
});
