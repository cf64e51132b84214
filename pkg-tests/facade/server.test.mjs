// The MCP server in JavaScript: the exchanges that it shares with the one in Rust, and its life with real clients and ports.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { MessageChannel } from "node:worker_threads";
import { Agent, CrabletError, mcp, tool, toolOutput } from "crablet";
import { ask, McpServer, needsInput, serverTool } from "crablet/server";
import { scriptedModel } from "crablet/test";
import { fileTools, MemoryFiles } from "crablet/tools";
import { z } from "zod";
import { deferred } from "./support.mjs";

const number = { type: "number" };
const anything = { type: "object" };
const text = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
const form = { type: "object", properties: { name: { type: "string" } } };

/** The server of the exchanges. */
function fixture() {
  const sum = serverTool({
    description: "Adds",
    input: { type: "object", properties: { a: number, b: number }, required: ["a", "b"] },
    outputSchema: { type: "object", properties: { sum: number }, required: ["sum"] },
    execute: ({ a, b }) => ({ sum: a + b }),
  });
  return new McpServer({
    name: "fixture",
    version: "1.0.0",
    instructions: "Be kind.",
    logging: true,
    pageSize: 4,
    available: (name) => (name === "blocked" ? "closed for now" : undefined),
    complete: ({ value }) => ["apple", "avocado", "berry"].filter((fruit) => fruit.startsWith(value)),
    tools: {
      echo: tool({ description: "Says it again", input: text, execute: (input) => input.text }),
      sum,
      fail: tool({ description: "Fails", input: anything, execute: () => Promise.reject(new Error("no disk")) }),
      ask: tool({
        description: "Asks first",
        input: anything,
        execute: (_, { inputResponses, requestState }) =>
          inputResponses.who === undefined
            ? needsInput({ who: ask.form("Who are you?", form) }, "kept")
            : `Hello ${inputResponses.who.content.name} ${requestState}`,
      }),
      blocked: tool({ description: "Is blocked", input: anything, execute: () => "never" }),
    },
    resources: {
      "test://note": { name: "note", mimeType: "text/plain", read: () => "note text" },
      "test://many/{id}": { name: "many", read: (_, { id }) => (id === "0" ? undefined : `number ${id}`) },
    },
    prompts: {
      hello: {
        description: "Says hello",
        arguments: { who: { description: "Whom", required: true } },
        get: ({ who }) => `Say hello to ${who}`,
      },
    },
  });
}

/** Whether everything expected is there. */
function holds(expected, sent) {
  if (expected === "__absent__") return sent === undefined;
  if (Array.isArray(expected))
    return (
      Array.isArray(sent) && sent.length === expected.length && expected.every((item, at) => holds(item, sent[at]))
    );
  if (typeof expected !== "object" || expected === null) return expected === sent;
  return Object.entries(expected).every(([name, value]) => holds(value, sent?.[name]));
}

const { exchanges } = JSON.parse(
  readFileSync(new URL("../fixtures/mcp-server/exchanges.json", import.meta.url), "utf8"),
);

for (const { name, steps } of exchanges) {
  test(`exchange: ${name}`, async () => {
    const [client, server] = mcp.pair();
    const sent = [];
    client.addEventListener("message", ({ data }) => sent.push(data));
    fixture().connect(server);
    for (const { send, expect } of steps) {
      client.postMessage(send);
      // Nothing here waits for anything but promises: after a turn of the event loop all is said.
      await new Promise((resolve) => setImmediate(resolve));
      const got = sent.splice(0);
      assert.ok(
        got.length === expect.length && expect.every((wanted, at) => holds(wanted, got[at])),
        `${JSON.stringify(send)}\nsent ${JSON.stringify(got)}\nexpected ${JSON.stringify(expect)}`,
      );
    }
  });
}

/** A client of crablet, connected to a server in the same program. */
async function connected(server, options = {}) {
  const [ours, theirs] = mcp.pair();
  const connection = server.connect(theirs);
  const client = await mcp.connect(mcp.port(ours, options));
  return { client, connection };
}

test("an agent uses the tools of a server in the same page", async () => {
  const server = new McpServer({
    name: "page",
    version: "1",
    tools: {
      add: tool({
        description: "Adds",
        input: z.object({ a: z.number(), b: z.coerce.number().default(5) }),
        execute: ({ a, b }) => ({ sum: a + b }),
      }),
    },
  });
  const [ours, theirs] = mcp.pair();
  server.connect(theirs);
  const model = scriptedModel([[{ type: "tool-call", toolName: "page__add", input: { a: 1 } }], "done"]);
  const agent = new Agent({ model, mcpServers: { page: mcp.port(ours) } });
  assert.equal((await agent.run("go")).text, "done");
  assert.match(JSON.stringify(model.requests[1].messages.at(-1)), /\{\\"sum\\":6\}/);
  await agent.close();
});

test("a result that cannot be told whole has failed, and what is no word for no approval asks for one", async () => {
  const results = {
    aFunction: () => () => {},
    aGenerator: function* () {
      yield 1;
    },
    noContent: () => toolOutput({}),
    anotherContent: () => toolOutput({ content: 5 }),
    anotherPart: () => toolOutput({ content: [{ type: "json", value: 1 }] }),
    noText: () => toolOutput({ content: [{ type: "text" }] }),
  };
  const tools = Object.entries(results).map(([name, execute]) => [
    name,
    tool({ description: "d", input: anything, execute }),
  ]);
  const risky = tool({ description: "d", input: anything, needsApproval: "true", execute: () => "ran" });
  const server = new McpServer({ name: "s", version: "1", tools: { ...Object.fromEntries(tools), risky } });
  const [ours, theirs] = mcp.pair();
  server.connect(theirs);
  const client = await mcp.connect(mcp.port(ours));
  for (const name of [...Object.keys(results), "risky"]) {
    const { isError, content } = await client.callTool(name, {});
    assert.ok(isError, name);
    assert.equal(typeof content[0].text, "string", name);
  }
  await client.close();
});

test("over a MessagePort, with progress, files and failures", async () => {
  const { port1, port2 } = new MessageChannel();
  const server = new McpServer({
    name: "worker",
    version: "1",
    tools: {
      work: tool({
        description: "Works",
        input: anything,
        execute: (_, { progress }) => {
          progress({ progress: 1, total: 2 });
          progress(2);
          return toolOutput({ content: [{ type: "image", mediaType: "image/png", data: "AAAA" }] });
        },
      }),
    },
  });
  server.connect(port2);
  const client = await mcp.connect(mcp.port(port1));
  try {
    const result = await client.callTool("work", {});
    assert.deepEqual(result.content, [{ type: "image", data: "AAAA", mimeType: "image/png" }]);
  } finally {
    await client.close();
    port1.close();
  }
});

test("what is no JSON is left out or a failed result, and is never thrown at nobody", async () => {
  const make = (execute) => tool({ description: "x", input: anything, execute });
  const tools = { functions: make(() => ({ a: 1, f() {} })), big: make(() => ({ n: 1n })) };
  const { client } = await connected(new McpServer({ name: "s", version: "1", tools }));
  assert.deepEqual((await client.callTool("functions", {})).structuredContent, { a: 1 });
  assert.equal((await client.callTool("big", {})).isError, true);
  await client.close();
});

test("a call that the client gives up is aborted, and a closed connection aborts all", async () => {
  const started = deferred();
  const reasons = [];
  const server = new McpServer({
    name: "s",
    version: "1",
    tools: {
      stuck: tool({
        description: "Never ends",
        input: anything,
        execute: (_, { signal }) => {
          started.resolve();
          return new Promise((_, reject) => {
            signal.addEventListener("abort", () => {
              reasons.push(signal.reason.name);
              reject(signal.reason);
            });
          });
        },
      }),
    },
  });
  const { client } = await connected(server);
  const controller = new AbortController();
  const call = client.callTool("stuck", {}, { signal: controller.signal });
  await started.promise;
  controller.abort();
  await assert.rejects(call);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(reasons, ["AbortError"]);

  const [ours, theirs] = mcp.pair();
  const connection = server.connect(theirs);
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const heard = [];
  ours.addEventListener("message", ({ data }) => heard.push(data));
  ours.postMessage({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "stuck", _meta: meta } });
  await new Promise((resolve) => setImmediate(resolve));
  connection.close();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(reasons.length, 2);
  assert.deepEqual(heard, [], "a closed connection says nothing");
});

test("other tools are served, and the client is told", async () => {
  const make = (description) => tool({ description, input: anything, execute: () => description });
  const server = new McpServer({ name: "s", version: "1", tools: { one: make("one") } });
  const [client, theirs] = mcp.pair();
  const told = [];
  client.addEventListener("message", ({ data }) => told.push(data.method ?? data.result));
  server.connect(theirs);
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  client.postMessage({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-11-25" } });
  await turn();
  server.expose({ two: make("two") });
  await turn();
  assert.equal(told.at(-1), "notifications/tools/list_changed");
  client.postMessage({ jsonrpc: "2.0", id: 2, method: "tools/list" });
  await turn();
  assert.deepEqual(
    told.at(-1).tools.map(({ name }) => name),
    ["one", "two"],
  );
  client.postMessage({ jsonrpc: "2.0", id: 3, method: "tools/call", params: { name: "two" } });
  await turn();
  assert.equal(told.at(-1).content[0].text, "two");
});

test("a tool that needs an approval runs only with one", async () => {
  const files = new MemoryFiles();
  const asked = [];
  const closed = new McpServer({ name: "s", version: "1", tools: fileTools(files) });
  const open = new McpServer({
    name: "s",
    version: "1",
    tools: fileTools(files),
    approve: ({ toolName, input }) => {
      asked.push([toolName, input.path]);
      return input.path === "yes.txt";
    },
  });
  const write = async (server, path) => {
    const { client } = await connected(server);
    return (await client.callTool("writeFile", { path, content: "x" })).content[0].text;
  };
  assert.match(await write(closed, "a.txt"), /approval of a person, and there is nobody to ask/);
  assert.match(await write(open, "no.txt"), /did not allow/);
  assert.match(await write(open, "yes.txt"), /wrote yes\.txt/);
  assert.deepEqual(asked, [
    ["writeFile", "no.txt"],
    ["writeFile", "yes.txt"],
  ]);
  assert.deepEqual([...files.files().keys()], ["yes.txt"]);
});

test("what cannot be served is refused where the server is made", () => {
  const isInvalid = (error) => CrabletError.is(error) && error.kind === "invalid-input";
  const named = (name) => ({ [name]: tool({ description: "x", input: anything, execute: () => 1 }) });
  assert.throws(() => new McpServer({ version: "1" }), isInvalid);
  for (const name of ["", "a b", "ü", "x".repeat(129)])
    assert.throws(() => new McpServer({ name: "s", version: "1", tools: named(name) }), isInvalid, name);
  for (const uri of ["x://{", "x://{a}{b}", "x://{?q}"])
    assert.throws(
      () => new McpServer({ name: "s", version: "1", resources: { [uri]: { name: "n", read: () => "" } } }),
      isInvalid,
      uri,
    );
});
