// Lines, bodies and answers of two hundred megabytes, made while they are sent: each ends in an error that says so as soon as
// its limit is met, and the module never holds more than a few times that limit.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Agent, anthropic, CrabletError, gemini, mcp, openai, openaiCompatible } from "crablet";
import { memoryStore } from "crablet/stores";
import { scriptedModel } from "crablet/test";

const MIB = 2 ** 20;
const PIECE = Buffer.alloc(MIB, "x");

/** How many pieces are sent: more than any limit. */
const PIECES = 200;

/**
 * The most that the module may have for one event or document of 32 MiB: its buffer twice while it grows, once more where it is
 * read, and what the module has anyway.
 */
const MAX_MODULE = 160 * MIB;

/** The memories of all modules: the platform's `fetch` has one of its own. */
const memories = [];
const { instantiate } = WebAssembly;
WebAssembly.instantiate = async (...args) => {
  const result = await instantiate.apply(WebAssembly, args);
  memories.push((result.instance ?? result).exports.memory);
  return result;
};

/**
 * The most that it may have for an answer of 64 MiB that ends the run: the text while it grows, and once more each in the event of
 * the step, in that of the end, and in what is saved.
 */
const MAX_MODULE_OF_ANSWER = 700 * MIB;
const moduleBytes = () => Math.max(...memories.map(({ buffer }) => buffer.byteLength));

const state = { answer: undefined, progress: undefined };
let server;
let baseUrl;
before(async () => {
  server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    response.on("error", () => {});
    await state.answer(response, pieces.length > 0 ? JSON.parse(Buffer.concat(pieces)) : {}, request);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  baseUrl = `http://127.0.0.1:${server.address().port}`;
});
after(() => {
  server.close();
  server.closeAllConnections();
});

/** Sends pieces without an end of the line, until nobody reads them any more. */
async function flood(response, beginning, piece = PIECE) {
  const closed = new Promise((resolve) => response.once("close", resolve));
  response.write(beginning);
  // Counted by each answer for itself: one that nobody reads any more may not know yet when the next one begins.
  const progress = { sent: 0 };
  state.progress = progress;
  for (; progress.sent < PIECES && !response.destroyed; progress.sent += 1) {
    if (response.write(piece)) continue;
    await Promise.race([closed, new Promise((resolve) => response.once("drain", resolve))]);
  }
  response.end();
}

/** What became of a run, or of the call of a tool. */
const outcome = (promise) =>
  promise.then(
    () => ({ kind: "none" }),
    (error) => {
      assert.ok(CrabletError.is(error), String(error));
      return error;
    },
  );

/** The rest was not waited for: what is sent ahead is less than the whole. */
function checkGivenUp() {
  const { sent } = state.progress;
  assert.ok(sent < PIECES, `all ${sent} pieces were read`);
}

async function worksOn() {
  assert.equal((await new Agent({ model: scriptedModel(["fine"]) }).run("hi")).text, "fine");
}

const options = () => ({ baseUrl, apiKey: "k" });
const MODELS = {
  anthropic: () => anthropic("m", options()),
  openai: () => openai("m", options()),
  "chat completions": () => openaiCompatible("m", options()),
  gemini: () => gemini("m", options()),
};

for (const [name, model] of Object.entries(MODELS)) {
  test(`lines and documents without an end are given up at their limit: ${name}`, async () => {
    const run = () => outcome(new Agent({ model: model(), retry: false }).run("hi"));
    const answer = (status, type, beginning) => {
      state.answer = (response) => {
        response.writeHead(status, { "content-type": type });
        return flood(response, beginning);
      };
    };
    answer(200, "text/event-stream", 'data: {"x":"');
    const line = await run();
    assert.equal(line.kind, "malformed-stream");
    assert.match(line.message, /larger than 33554432 bytes/);
    checkGivenUp();
    answer(200, "application/json", '{"x":"');
    const document = await run();
    assert.equal(document.kind, "limit");
    checkGivenUp();
    assert.ok(moduleBytes() <= MAX_MODULE, `the module has ${moduleBytes() / MIB} MiB`);
    answer(400, "application/json", '{"error":{"message":"');
    const error = await run();
    assert.deepEqual([error.kind, error.status], ["bad-request", 400]);
    assert.ok(error.message.length < 3_000);
    checkGivenUp();
    await worksOn();
  });
}

test("an MCP answer without an end fails its call and no other", async () => {
  const json = "application/json";
  const serverInfo = { name: "s", version: "1" };
  const results = {
    initialize: ({ params }) => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo }),
    "tools/call": () => ({ content: [{ type: "text", text: "ok" }] }),
  };
  let endless;
  state.answer = (response, message, request) => {
    if (message.id === undefined) return response.writeHead(request.method === "GET" ? 405 : 202).end();
    response.writeHead(200, { "content-type": endless?.type ?? json });
    if (endless !== undefined && message.method === "tools/call") return flood(response, endless.beginning(message.id));
    return response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result: results[message.method](message) }));
  };
  const client = await mcp.connect(mcp.http(`${baseUrl}/mcp`, { era: "handshake" }));
  const begun = (id) => `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`;
  for (const [type, beginning] of [
    [json, begun],
    ["text/event-stream", (id) => `data: ${begun(id)}`],
    ["text/event-stream", () => ": a comment"],
    ["text/html", () => "<html>"],
  ]) {
    endless = { type, beginning };
    const error = await outcome(client.callTool("x", {}));
    assert.equal(error.kind, "limit", `${type}: ${error}`);
    checkGivenUp();
  }
  assert.ok(moduleBytes() <= MAX_MODULE, `the module has ${moduleBytes() / MIB} MiB`);
  endless = undefined;
  assert.equal((await client.callTool("x", {})).content[0].text, "ok");
  await client.close();
  await worksOn();
});

test("an answer that goes on in good pieces ends at the limit of answers and of inputs of tools", async () => {
  const event = (delta) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`;
  const call = (more) => event({ tool_calls: [{ index: 0, ...more }] });
  const long = "x".repeat(MIB);
  const begin = call({ id: "c", type: "function", function: { name: "t", arguments: '{"a":"' } });
  for (const [beginning, piece] of [
    [begin, call({ function: { arguments: long } })],
    ["", event({ content: long })],
  ]) {
    state.answer = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      return flood(response, beginning, piece);
    };
    const error = await outcome(new Agent({ model: MODELS["chat completions"](), retry: false }).run("hi"));
    assert.equal(error.kind, "limit", String(error));
    checkGivenUp();
  }
  assert.ok(moduleBytes() <= MAX_MODULE_OF_ANSWER, `the module has ${moduleBytes() / MIB} MiB`);
  await worksOn();
});

test("the longest answer is kept and saved", async () => {
  const event = (delta, finish_reason = null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  const piece = event({ content: "x".repeat(MIB) });
  state.answer = async (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let sent = 0; sent < 63; sent += 1)
      if (!response.write(piece)) await new Promise((resolve) => response.once("drain", resolve));
    response.end(event({}, "stop"));
  };
  const store = memoryStore();
  const session = await new Agent({ model: MODELS["chat completions"]() }).open("long", store);
  assert.equal((await session.send("hi").result).text.length, 63 * MIB);
  assert.ok((await store.read("long")).entries.some((entry) => entry.length > 63 * MIB));
  assert.ok(moduleBytes() <= MAX_MODULE_OF_ANSWER, `the module has ${moduleBytes() / MIB} MiB`);
});
