// Agents as tools of other agents: their events, their tokens, their approvals, their abort.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, subAgent, tool } from "crablet";
import { scriptedModel } from "crablet/test";
import { collect, endless, types } from "./support.mjs";

const anything = { type: "object" };
const call = (toolName, input = {}, callId) => ({ type: "tool-call", toolName, input, ...(callId && { callId }) });
const usage = { type: "usage", inputTokens: 10, outputTokens: 5 };
const delegate = [call("helper", { prompt: "look it up" }, "h"), usage];

/** An agent whose helper has this model and these tools. */
function helped(outer, inner, tools = {}, options = {}) {
  const agent = new Agent({ model: inner, tools });
  return new Agent({ model: outer, tools: { helper: subAgent({ description: "helps", agent }) }, ...options });
}

test("a sub-agent answers the call with its own model and its own tools", async () => {
  const outer = scriptedModel([delegate, "done"]);
  const inner = scriptedModel([[call("search")], [{ type: "text-delta", delta: "it is 42" }, usage]]);
  const tools = { search: tool({ description: "s", input: anything, execute: () => "found" }) };
  const events = await collect(helped(outer, inner, tools).stream("go"));
  assert.deepEqual(inner.requests[0].messages[0].content, [{ type: "text", text: "look it up" }]);
  assert.deepEqual(
    inner.requests[0].tools.map(({ name }) => name),
    ["search"],
  );
  const result = events.find(({ type }) => type === "tool-result");
  assert.equal(result.output, "it is 42");
  assert.deepEqual(result.details, { stopReason: "stop", usage: { inputTokens: 10, outputTokens: 5 } });
  const within = events.filter(({ type }) => type === "sub-agent-event");
  assert.ok(within.every(({ callId }) => callId === "h"));
  const names = types(within.map(({ event }) => event));
  assert.equal(names[0], "run-start");
  assert.equal(names.at(-1), "run-end");
  assert.ok(names.includes("text-delta") && names.includes("tool-result"));
  assert.deepEqual(events.at(-1).usage, { inputTokens: 20, outputTokens: 10 });
});

test("what a sub-agent says is not taken for what the agent says", async () => {
  const agent = helped(scriptedModel([delegate, "done"]), scriptedModel(["from within"]));
  const run = agent.session().send("go");
  let text = "";
  for await (const part of run.textStream) text += part;
  assert.equal(text, "done");
  const { messages, steps } = await run.result;
  assert.equal(steps.length, 2);
  assert.deepEqual(
    messages.map(({ role }) => role),
    ["user", "assistant", "tool", "assistant"],
  );
});

test("an approval within suspends the run, and the saved session goes on elsewhere", async () => {
  const deleted = [];
  const build = () => {
    const tools = {
      delete: tool({ description: "d", input: anything, needsApproval: true, execute: () => deleted.push(1) }),
    };
    return helped(
      scriptedModel([(request) => (request.messages.length === 1 ? delegate : "done"), "done"]),
      scriptedModel([(request) => (request.messages.length === 1 ? [call("delete")] : "clean"), "clean"]),
      tools,
    );
  };
  const session = build().session();
  const { stopReason } = await session.send("clean up").result;
  assert.equal(stopReason, "suspended");
  const [pending] = session.getState().pending;
  assert.equal(pending.toolName, "delete");
  const restored = build().session(JSON.parse(JSON.stringify(session.toJSON())));
  assert.equal(restored.getState().status, "interrupted");
  restored.approve(pending.callId);
  const { text } = await restored.resume().result;
  assert.equal(text, "done");
  assert.equal(deleted.length, 1);
  assert.deepEqual(restored.getState().pending, []);
});

test("approvals within are decided by the agent that runs", async () => {
  const asked = [];
  const tools = { delete: tool({ description: "d", input: anything, needsApproval: true, execute: () => "deleted" }) };
  const inner = scriptedModel([[call("delete")], "clean"]);
  const approve = ({ toolName }) => {
    asked.push(toolName);
    return true;
  };
  const { text } = await helped(scriptedModel([delegate, "done"]), inner, tools, { approve }).run("go");
  assert.equal(text, "done");
  assert.deepEqual(asked, ["delete"]);
  assert.equal(inner.requests[1].messages.at(-1).content[0].isError, false);
});

test("an abort reaches the model of a sub-agent and closes its run first", async () => {
  const inner = endless();
  const run = helped(scriptedModel([delegate]), inner).stream("go");
  const events = [];
  for await (const event of run) {
    events.push(event);
    if (event.event?.type === "text-delta") run.abort();
  }
  assert.equal(inner.signals[0].aborted, true);
  const closing = events.slice(-4);
  assert.deepEqual(
    closing.map((event) => event.event?.type ?? event.type),
    ["text-end", "run-end", "tool-result", "run-end"],
  );
});

test("the token budget of a run covers its sub-agents", async () => {
  const inner = scriptedModel([[call("search"), usage], "never"]);
  const tools = { search: tool({ description: "s", input: anything, execute: () => "found" }) };
  const { stopReason } = await helped(scriptedModel([delegate, "never"]), inner, tools, { maxTokens: 30 }).run("go");
  assert.equal(stopReason, "limit");
  assert.equal(inner.requests.length, 1);
});

test("a sub-agent takes what its schema says", async () => {
  const inner = scriptedModel(["ok"]);
  const helper = subAgent({
    description: "h",
    agent: new Agent({ model: inner }),
    input: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  });
  const outer = scriptedModel([[call("helper", { city: "Oslo" })], "done"]);
  await new Agent({ model: outer, tools: { helper } }).run("go");
  assert.equal(inner.requests[0].messages[0].content[0].text, '{"city":"Oslo"}');
  assert.throws(() => subAgent({ description: "h", agent: {} }), /needs an agent/);
});

test("what waits within is known of a saved session before its run is resumed", async () => {
  const execute = () => assert.fail("it was not allowed");
  const tools = {
    delete: tool({ description: "d", input: anything, needsApproval: true, execute }),
    locate: tool({ description: "l", input: anything }),
  };
  const inner = scriptedModel([[call("delete", { path: "a" }), call("locate")]]);
  const agent = helped(scriptedModel([[...delegate, call("locate", { precise: true })]]), inner, tools);
  const session = agent.session();
  await session.send("go").result;
  const { pending, clientCalls } = session.getState();
  assert.deepEqual([pending.length, clientCalls.length], [1, 1]);
  const restored = agent.session(session.toJSON()).getState();
  assert.deepEqual(
    restored.pending,
    pending.map(({ inputHash: _hash, ...waiting }) => waiting),
  );
  assert.deepEqual(restored.clientCalls, clientCalls);
});
