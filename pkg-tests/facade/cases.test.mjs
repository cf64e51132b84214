// The cases of the area agent-loop that a JavaScript caller can meet, by their ids.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, openaiCompatible, tool } from "crablet";
import { scriptedFetch, scriptedModel } from "crablet/test";
import { deferred, rebuild, types } from "./support.mjs";

const anything = { type: "object" };
const call = (toolName, input = {}, callId) => ({ type: "tool-call", toolName, input, ...(callId && { callId }) });
const inShort = ({ role, content }) => {
  if (role === "tool") return `tool(${content.map(({ callId, isError }) => `${callId} ${isError ? "error" : "ok"}`)})`;
  return `${role}(${content.map((part) => part.callId ?? part.text)})`;
};

test("case 159: an abort while tools run gives each call one result at once, and the next prompt is valid", async () => {
  const model = scriptedModel([[call("a", {}, "t1"), call("hang", {}, "t2"), call("hang", {}, "t3")], "going on"]);
  const tools = {
    a: tool({ description: "a", input: anything, execute: () => "ok" }),
    hang: tool({ description: "h", input: anything, maxConcurrent: 1, execute: () => new Promise(() => {}) }),
  };
  const session = new Agent({ model, tools }).session();
  const run = session.send("first");
  for await (const event of run) {
    if (event.type === "tool-result" && event.callId === "t1") run.abort();
  }
  await session.send("go on").result;
  assert.deepEqual(session.getState().messages.map(inShort), [
    "user(first)",
    "assistant(t1,t2,t3)",
    "tool(t1 ok,t2 error,t3 error)",
    "user(go on)",
    "assistant(going on)",
  ]);
});

test("case 160: an abort while arguments stream leaves no call and no result", async () => {
  const fetch = scriptedFetch([
    {
      chunks: [
        'data: {"choices":[{"index":0,"delta":{"content":"I will"}}]}\n\n',
        'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","function":{"name":"a","arguments":"{\\"pa"}}]}}]}\n\n',
      ],
      // biome-ignore lint/suspicious/noThenProperty: it is the name of the option
      then: "hold",
    },
  ]);
  const session = new Agent({ model: openaiCompatible("m", { baseUrl: "https://models.test/v1", fetch }) }).session();
  const run = session.send("go");
  const events = [];
  for await (const event of run) {
    events.push(event);
    if (event.type === "tool-input-delta") run.abort();
  }
  assert.ok(!types(events).includes("tool-result"));
  assert.deepEqual(session.getState().messages.map(inShort), ["user(go)", "assistant(I will)"]);
});

test("case 174: what a tool does after the abort is not seen", async () => {
  const gate = deferred();
  const late = [];
  process.on("unhandledRejection", (reason) => late.push(reason));
  const execute = async (_input, { progress }) => {
    await gate.promise;
    progress("first");
    progress("second");
    throw new Error("too late");
  };
  const tools = { slow: tool({ description: "s", input: anything, execute }) };
  const session = new Agent({ model: scriptedModel([[call("slow", {}, "t1")], "next"]), tools }).session();
  const run = session.send("go");
  const events = [];
  for await (const event of run) {
    events.push(event);
    if (event.type === "tool-start") run.abort();
  }
  gate.resolve();
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(types(events).slice(-2), ["tool-result", "run-end"]);
  assert.equal((await session.send("again").result).text, "next");
  assert.deepEqual(session.getState().messages.slice(0, 3).map(inShort), [
    "user(go)",
    "assistant(t1)",
    "tool(t1 error)",
  ]);
  assert.deepEqual(late, []);
});

test("case 175: whatever a tool throws is an error for the model, and the loop goes on", async () => {
  for (const [thrown, told] of [
    [new Error("x"), /^x$/],
    ["x", /^x$/],
    [undefined, /./],
    [Object.create(null), /./],
  ]) {
    const execute = () => {
      throw thrown;
    };
    const model = scriptedModel([[call("bad")], "going on"]);
    const { text } = await new Agent({
      model,
      tools: { bad: tool({ description: "b", input: anything, execute }) },
    }).run("go");
    assert.equal(text, "going on");
    const [result] = model.requests[1].messages.at(-1).content;
    assert.equal(result.isError, true);
    assert.match(result.content[0].text, told);
  }
});

test("case 177: half a surrogate pair becomes a replacement character, the same in each request", async () => {
  const chunk = (delta, reason) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
  const answer = { chunks: [chunk({ content: "ok" }, "stop"), "data: [DONE]\n\n"] };
  const calls = [{ index: 0, id: "t1", function: { name: "a", arguments: "{}" } }];
  const fetch = scriptedFetch([{ chunks: [chunk({ tool_calls: calls }, "tool_calls")] }, answer, answer]);
  const tools = { a: tool({ description: "a", input: anything, execute: () => "a\ud83db" }) };
  const model = openaiCompatible("m", { baseUrl: "https://models.test/v1", fetch });
  const session = new Agent({ model, tools }).session();
  await session.send("c\ude00d").result;
  await session.send("again").result;
  for (const { body } of fetch.requests) assert.ok(body.isWellFormed?.() ?? true);
  const sent = fetch.requests.slice(1).map(({ body }) => {
    const { messages } = JSON.parse(body);
    return [messages.find(({ role }) => role === "user").content, messages.find(({ role }) => role === "tool").content];
  });
  assert.deepEqual(sent, [
    ["c\ufffdd", "a\ufffdb"],
    ["c\ufffdd", "a\ufffdb"],
  ]);
});

test("a transcript can be rebuilt from the events alone", async () => {
  const gate = deferred();
  const tools = {
    a: tool({ description: "a", input: anything, execute: () => ({ value: 1 }) }),
    wait: tool({ description: "w", input: anything, execute: () => gate.promise }),
  };
  const model = scriptedModel([
    [{ type: "text-delta", delta: "let me see" }, call("a", { n: 1 }, "t1"), call("wait", {}, "t2")],
    "first",
    ["second ", "answer"],
  ]);
  const session = new Agent({ model, tools }).session();
  const run = session.send("go");
  const events = [];
  for await (const event of run) {
    // As it arrives elsewhere.
    events.push(JSON.parse(JSON.stringify(event)));
    if (event.type !== "tool-start" || event.callId !== "t2") continue;
    run.steer("in English");
    run.followUp("and then");
    gate.resolve("ok");
  }
  const rebuilt = rebuild(events);
  assert.deepEqual(rebuilt, JSON.parse(JSON.stringify(session.getState().messages)));
  assert.deepEqual(rebuilt.map(inShort), [
    "user(go)",
    "assistant(let me see,t1,t2)",
    "tool(t1 ok,t2 ok)",
    "user(in English)",
    "assistant(first)",
    "user(and then)",
    "assistant(second answer)",
  ]);
  const stored = JSON.parse(JSON.stringify(session.toJSON())).snapshot;
  for (const { id } of rebuilt)
    assert.ok(id === undefined || stored.includes(id), "the saved text has the same messages");
});
