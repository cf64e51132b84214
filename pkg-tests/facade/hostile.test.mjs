// What is made to do harm: from models, MCP servers and stores. Nothing hangs or traps, nothing reaches the prototypes, and
// the agent works on afterwards.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Agent, CrabletError, mcp, openaiCompatible, tool } from "crablet";
import { scriptedModel } from "crablet/test";
import { handshakeServer } from "../lib/mcp-servers.mjs";

const DEPTH = 200_000;
const bomb = "[".repeat(DEPTH);
const closedBomb = `${bomb}${"]".repeat(DEPTH)}`;

/** Names that change an object where they are assigned and not defined. */
const POLLUTION =
  '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"prototype":{"polluted":1},"a":1}';

const state = { answer: undefined };
let server;
let baseUrl;
before(async () => {
  server = createServer((request, response) => {
    request.resume();
    request.on("end", () => state.answer(response));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  baseUrl = `http://127.0.0.1:${server.address().port}`;
});
after(() => {
  server.close();
  server.closeAllConnections();
});

const model = () => openaiCompatible("m", { baseUrl, apiKey: "k" });
const stream = (...data) => {
  state.answer = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(data.map((text) => `data: ${text}\n\n`).join(""));
  };
};
const chunk = (delta, finish_reason = null) => JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] });
const calls = (input, name = "look") => [
  chunk({ tool_calls: [{ index: 0, id: "c", type: "function", function: { name, arguments: input } }] }),
  chunk({}, "tool_calls"),
  "[DONE]",
];

/** An agent answers after whatever it went through. */
async function worksOn() {
  assert.equal((await new Agent({ model: scriptedModel(["fine"]) }).run("hi")).text, "fine");
  assert.equal({}.polluted, undefined);
  assert.equal(Object.polluted, undefined);
}

const isError = (error) => CrabletError.is(error) && error.kind !== "internal";

test("a model's stream that is nested without end, or holds numbers beyond all, is an error or read", async () => {
  const numbers = `{"choices":[{"index":1e999,"delta":{"content":"x"}}],"usage":{"prompt_tokens":${"9".repeat(5_000)}}}`;
  const doubled = '{"choices":[],"choices":[{"index":0,"delta":{"content":"a","content":"b"}}]}';
  for (const hostile of [bomb, closedBomb, `{"choices":${closedBomb}}`, `{"error":${closedBomb}}`, numbers, doubled]) {
    stream(hostile);
    await assert.rejects(new Agent({ model: model(), retry: false }).run("hi"), isError, hostile.slice(0, 40));
  }
  await worksOn();
});

test("input of a tool that is nested without end never reaches the tool", async () => {
  const seen = [];
  const look = tool({ description: "l", input: { type: "object" }, execute: (input) => seen.push(input) });
  for (const input of [bomb, closedBomb, `{"a":${closedBomb}}`]) {
    stream(...calls(input));
    const agent = new Agent({ model: model(), tools: { look }, retry: false, maxSteps: 2 });
    await agent.run("hi").catch((error) => assert.ok(isError(error), String(error)));
  }
  assert.deepEqual(seen, []);
  await worksOn();
});

test("names of prototypes in what a model writes are members like others", async () => {
  const seen = [];
  const look = tool({ description: "l", input: { type: "object" }, execute: (input) => String(seen.push(input)) });
  stream(...calls(POLLUTION));
  const agent = new Agent({ model: model(), tools: { look }, retry: false, maxSteps: 1 });
  const session = agent.session();
  const events = [];
  for await (const event of session.send("hi")) events.push(event);
  assert.deepEqual(seen, [JSON.parse(POLLUTION)]);
  assert.ok(Object.hasOwn(seen[0], "__proto__"));
  assert.equal(seen[0].polluted, undefined);
  const restored = new Agent({ model: scriptedModel(["on"]) }).session(JSON.parse(JSON.stringify(session)));
  const [part] = restored.getState().messages[1].content;
  assert.ok(Object.hasOwn(part.input, "__proto__"));
  assert.equal(part.input.polluted, undefined);
  await worksOn();
});

test("tools that a model calls by names of prototypes do not exist", async () => {
  const look = tool({ description: "l", input: { type: "object" }, execute: () => "ok" });
  for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
    stream(...calls("{}", name));
    const agent = new Agent({ model: model(), tools: { look }, retry: false, maxSteps: 1 });
    const session = agent.session();
    const results = [];
    for await (const event of session.send("hi")) if (event.type === "tool-result") results.push(event);
    assert.equal(results.length, 1, name);
    assert.equal(results[0].isError, true, name);
  }
  await worksOn();
});

test("what an MCP server sends in names, texts, schemas and content does no harm", async () => {
  const deep = { type: "object" };
  for (let at = deep, depth = 0; depth < 5_000; depth += 1) {
    at.properties = { a: { type: "object" } };
    at = at.properties.a;
  }
  const tools = [
    { name: "__proto__", inputSchema: { type: "object" } },
    { name: "constructor", description: "\u0000\u202e\u{e0041}".repeat(100), inputSchema: { type: "object" } },
    { name: "x".repeat(10_000), inputSchema: { type: "object" } },
    { name: "deep", inputSchema: deep },
    { name: "circle", inputSchema: { $defs: { a: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" } },
    { name: "pattern", inputSchema: { type: "object", properties: { a: { type: "string", pattern: "(a+)+$" } } } },
    { name: "good", inputSchema: { type: "object" } },
  ];
  const request = handshakeServer({
    "tools/list": () => ({ tools }),
    "tools/call": () => ({
      content: [{ type: "text", text: "\ud800 half" }],
      structuredContent: JSON.parse(POLLUTION),
    }),
  });
  const client = await mcp.connect(mcp.custom({ request }));
  const listed = await client.tools().catch((error) => assert.ok(isError(error), String(error)));
  const result = await client.callTool("good", {});
  assert.equal(result.structuredContent.polluted, undefined);
  assert.ok(Object.hasOwn(result.structuredContent, "__proto__"));
  assert.equal(result.content[0].text, "\ufffd half");
  assert.ok(listed === undefined || listed.some(({ name }) => name === "good"));
  await client.close();
  const long = `${"a".repeat(50_000)}!`;
  const script = scriptedModel([
    ({ tools: offered }) => [
      {
        type: "tool-call",
        toolName: offered.find(({ name }) => /pattern/.test(name))?.name ?? "none",
        input: { a: long },
      },
    ],
    "done",
  ]);
  const agent = new Agent({ model: script, mcpServers: { s: mcp.custom({ request }) } });
  await agent.run("hi").catch((error) => assert.ok(isError(error), String(error)));
  await agent.close();
  await worksOn();
});

test("a saved conversation that was tampered with is refused, or restored without harm", async () => {
  const session = new Agent({ model: scriptedModel(["one"]) }).session();
  await session.send("hi").result;
  const saved = session.toJSON();
  const text = JSON.stringify(saved);
  const tampered = [
    { ...saved, ...JSON.parse(POLLUTION) },
    JSON.parse(text.replace(/^\{/, '{"__proto__":{"polluted":1},')),
    ...Object.keys(saved).flatMap((name) => [
      { ...saved, [name]: closedBomb },
      { ...saved, [name]: JSON.parse(POLLUTION) },
      { ...saved, [name]: 1e308 },
      { ...saved, [name]: null },
      { ...saved, [name]: "\ud800" },
    ]),
  ];
  for (const one of tampered) {
    try {
      const restored = new Agent({ model: scriptedModel(["two"]) }).session(one);
      await restored.send("again").result;
    } catch (error) {
      assert.ok(isError(error), String(error.stack));
    }
  }
  await worksOn();
});

test("half a surrogate pair crosses in no direction", async () => {
  stream('{"choices":[{"index":0,"delta":{"content":"a \\ud83d b"},"finish_reason":"stop"}]}', "[DONE]");
  assert.equal((await new Agent({ model: model() }).run("hi")).text, "a \ufffd b");
  const script = scriptedModel([["\udc00 from a function"], "done"]);
  const session = new Agent({ model: script, instructions: "\ud800!" }).session();
  assert.equal((await session.send("\ud800 asked").result).text, "\ufffd from a function");
  assert.ok(!/[\ud800-\udfff]/.test(JSON.stringify(session)));
  assert.equal(script.requests[0].messages.at(-1).content[0].text, "\ufffd asked");
  await worksOn();
});
