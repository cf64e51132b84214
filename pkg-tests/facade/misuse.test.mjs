// What is given in the wrong form is an error that names it, and nothing of it is lost without a word.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, anthropic, CrabletError, tool, toolOutput } from "crablet";
import { scriptedModel } from "crablet/test";
import { endless } from "./support.mjs";

const anything = { type: "object" };
const model = () => ["fine"];
const invalid = (message) => ({ name: "CrabletError", kind: "invalid-input", message });

/** What the model is told of the one call of a tool. */
async function told(definition, options = {}) {
  const asked = scriptedModel([[{ type: "tool-call", toolName: "act", input: {} }], "done"]);
  const act = tool({ description: "a", input: anything, ...definition });
  await new Agent({ model: asked, tools: { act }, ...options }).run("go");
  return asked.requests[1].messages.at(-1).content[0];
}

test("an option of an agent that has another type is an error that names it", async () => {
  const wrong = {
    maxSteps: "5",
    maxTokens: -1,
    maxCost: "0.5",
    timeoutMs: 1.5,
    firstByteTimeoutMs: "1",
    approvalTimeoutMs: "60000",
    maxConcurrentTools: "2",
    maxIdenticalSteps: null,
    maxResultCharacters: "all",
    terminate: "ANY",
  };
  for (const [name, value] of Object.entries(wrong)) {
    const run = new Agent({ model, [name]: value }).run("hi");
    if (value === null) assert.equal((await run).text, "fine");
    else await assert.rejects(run, invalid(new RegExp(`^${name} must be `)), name);
  }
  for (const [options, message] of [
    [{ retry: { maxAttempts: "2" } }, /^maxAttempts must be/],
    [{ modelOptions: { temprature: 1 } }, /modelOptions: there is no option "temprature"/],
    [{ fallbackModels: ["gpt"] }, /this is no model/],
    [{ mcpServers: { docs: "https://example.com/mcp" } }, /"docs": this is no MCP server/],
  ])
    await assert.rejects(new Agent({ model, ...options }).run("hi"), invalid(message));
});

test("an option that there is none of is an error that names it and does not show what it holds", async () => {
  const secret = "sk-secret";
  const hides = (message) => (thrown) => {
    assert.ok(CrabletError.is(thrown) && thrown.kind === "invalid-input");
    assert.match(thrown.message, message);
    assert.ok(!thrown.message.includes(secret));
    return true;
  };
  await assert.rejects(
    new Agent({ model, apiKey: secret }).run("hi"),
    hides(/^the agent: there is no option "apiKey"$/),
  );
  await assert.rejects(new Agent({ model, beforeTool: () => secret }).run("hi"), hides(/"beforeTool"/));
  const agent = new Agent({ model });
  assert.throws(() => agent.stream("hi", { abortSignal: secret }), hides(/a run has no option "abortSignal"/));
  assert.throws(() => anthropic("m", { apikey: secret }), hides(/anthropic\(\) has no option "apikey"/));
  assert.throws(() => anthropic("m", { baseURL: secret }), hides(/"baseURL"/));
  const definition = { description: "d", input: anything, execute: () => "ran" };
  assert.throws(() => tool({ ...definition, needsAproval: true }), hides(/a tool has no option "needsAproval"/));
  assert.throws(() => tool(), hides(/needs an input schema/));
});

test("a call is not run when what should hold it up has another form", async () => {
  await assert.rejects(
    told({ execute: () => "ran", needsApproval: "true" }),
    invalid(/needsApproval must be true or false/),
  );
  await assert.rejects(told({ execute: () => "ran", timeoutMs: "9" }), invalid(/timeoutMs must be/));
  for (const answer of [false, true, "deny", 0, {}, { action: "block" }, { allow: false }]) {
    const { isError } = await told({ execute: () => "ran" }, { beforeToolCall: () => answer });
    assert.equal(isError, true, JSON.stringify(answer));
  }
  for (const answer of [undefined, null, { action: "allow" }]) {
    const { output } = await told({ execute: () => "ran" }, { beforeToolCall: () => answer });
    assert.equal(output, "ran");
  }
  for (const change of [{ activeTools: "act" }, { tools: [] }])
    await assert.rejects(told({ execute: () => "ran" }, { prepareStep: () => change }), invalid(/prepareStep failed/));
});

test("a message is text or a list of parts, and no part is left out", async () => {
  const session = new Agent({ model }).session();
  for (const input of [undefined, null, 5, { text: "hi" }])
    assert.throws(() => session.send(input), invalid(/is text or/));
  const text = { type: "text", text: "hi" };
  for (const input of [
    [text, { type: "image_url", image_url: "x" }],
    [{ role: "user", content: "hi" }],
    [text, null],
    [text, { type: "image", mediaType: "image/png", data: new ArrayBuffer(3) }],
    [text, { type: "image", mediaType: "image/png", data: new DataView(new ArrayBuffer(3)) }],
    [text, { type: "image", mediaType: "image/png", data: new Blob(["x"]) }],
  ])
    await assert.rejects(session.send(input).result, invalid(/cannot be read/), JSON.stringify(input));
  const bytes = { type: "image", mediaType: "image/png", data: new Uint8ClampedArray([1, 2, 3]) };
  await session.send([text, bytes]).result;
  assert.equal(session.getState().messages[0].content[1].data, "AQID");
});

test("what a tool returns is told whole, or the call has failed", async () => {
  const kinds = {
    Generator: function* () {
      yield 1;
    },
    AsyncGenerator: async function* () {
      yield 1;
    },
    Map: () => new Map([[1, 2]]),
    Response: () => new Response("x"),
  };
  for (const [kind, execute] of Object.entries(kinds)) {
    const { isError, content } = await told({ execute });
    assert.equal(isError, true, kind);
    assert.match(content[0].text, new RegExp(`cannot give a ${kind}`));
  }
  for (const output of [
    () => {},
    toolOutput({}),
    toolOutput({ content: 5 }),
    toolOutput({ content: [{ type: "json" }] }),
  ]) {
    const { isError } = await told({ execute: () => output });
    assert.equal(isError, true);
  }
  for (const [output, text] of [
    [{}, "{}"],
    [Object.create(null), "{}"],
    [new (class Nothing {})(), "{}"],
    [[], "[]"],
    [null, "null"],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [undefined, "done"],
  ]) {
    const { isError, content } = await told({ execute: () => output });
    assert.deepEqual([isError, content], [false, [{ type: "text", text }]]);
  }
});

test("what a model function yields is an answer, or the run has failed", async () => {
  const yields = (piece) => new Agent({ model: () => [piece], retry: false }).run("hi");
  for (const piece of [5, null, {}, { type: "text", text: "hi" }, { type: "text-delta", text: "hi" }])
    await assert.rejects(
      yields(piece),
      { kind: "bad-request", message: /is no piece of an answer/ },
      JSON.stringify(piece),
    );
});

test("a signal that is none leaves the session as it was", async () => {
  const session = new Agent({ model }).session();
  assert.throws(() => session.send("hi", { signal: new AbortController() }), /signal/);
  assert.equal(session.getState().status, "idle");
  assert.equal((await session.send("hi").result).text, "fine");
});

test("after a loop or a stream that was left the next prompt may come at once", async () => {
  const words = endless();
  let answer = words;
  const session = new Agent({ model: (...given) => answer(...given) }).session();
  for await (const event of session.send("one")) if (event.type === "text-delta") break;
  assert.equal(session.getState().status, "idle");
  const reader = session.send("two").toReadableStream().getReader();
  await reader.read();
  await reader.cancel();
  assert.equal(session.getState().status, "idle");
  answer = model;
  assert.equal((await session.send("three").result).text, "fine");
});

test("an error is written as JSON with its message", () => {
  const error = new CrabletError({ kind: "rate-limit", message: "too many", retryable: true, status: 429 });
  const info = { kind: "rate-limit", message: "too many", retryable: true, status: 429 };
  assert.deepEqual(JSON.parse(JSON.stringify(error)), info);
});
