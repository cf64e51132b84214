// Spans with the names of OpenTelemetry, through a function.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, subAgent, tool } from "crablet";
import { scriptedModel } from "crablet/test";
import { trace } from "crablet/trace";

const anything = { type: "object" };
const call = (toolName, input = {}, callId) => ({ type: "tool-call", toolName, input, ...(callId && { callId }) });
const usage = { type: "usage", inputTokens: 10, outputTokens: 5 };

/** The spans of a run with a sub-agent and a tool that fails. */
async function spansOf(options) {
  const spans = [];
  let now = 1000;
  const clock = () => {
    now += 1;
    return now;
  };
  const helper = subAgent({
    description: "h",
    agent: new Agent({ model: scriptedModel([["secret finding", usage]]) }),
  });
  const pay = tool({ description: "p", input: anything, execute: () => Promise.reject(new Error("secret failure")) });
  const model = scriptedModel([
    [call("helper", { prompt: "secret task" }, "h"), call("pay", { card: "secret" }, "p"), usage],
    ["secret answer", usage],
  ]);
  const onEvent = trace((span) => spans.push(span), { now: clock, ...options });
  await new Agent({ model, tools: { helper, pay }, onEvent }).run("secret prompt");
  return spans;
}

test("a run is a span around those of its model calls, its tools and its sub-agents", async () => {
  const spans = await spansOf({ agentName: "clerk", conversationId: "c-1" });
  const one = (name) => {
    const found = spans.filter((span) => span.name === name);
    assert.equal(found.length, 1, name);
    return found[0];
  };
  const run = spans.at(-1);
  assert.equal(run.name, "invoke_agent clerk");
  assert.equal(run.parentSpanId, undefined);
  assert.equal(run.attributes["gen_ai.conversation.id"], "c-1");
  assert.equal(run.attributes["gen_ai.usage.input_tokens"], 30);
  assert.deepEqual(run.attributes["gen_ai.response.finish_reasons"], ["stop"]);
  const [helper, inner, pay] = [one("execute_tool helper"), one("invoke_agent helper"), one("execute_tool pay")];
  assert.equal(helper.parentSpanId, run.spanId);
  assert.equal(inner.parentSpanId, helper.spanId);
  assert.equal(pay.attributes["error.type"], "tool_error");
  assert.equal(pay.attributes["gen_ai.tool.call.id"], "p");
  const chats = spans.filter(({ kind }) => kind === "client");
  assert.deepEqual(chats.map(({ parentSpanId }) => parentSpanId).sort(), [inner.spanId, run.spanId, run.spanId].sort());
  assert.equal(chats[0].attributes["gen_ai.operation.name"], "chat");
  assert.equal(chats[0].attributes["gen_ai.usage.output_tokens"], 5);
  assert.ok(spans.every(({ traceId, spanId }) => /^[0-9a-f]{32}$/.test(traceId) && /^[0-9a-f]{16}$/.test(spanId)));
  assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1);
  assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, spans.length);
  for (const { startTime, endTime } of spans) assert.ok(run.startTime <= startTime && startTime <= endTime);
  assert.deepEqual(structuredClone(spans), spans, "plain data");
});

test("nothing that was said is in a span unless it is asked for", async () => {
  assert.ok(!JSON.stringify(await spansOf()).includes("secret"));
  const told = await spansOf({ content: true });
  const run = told.at(-1);
  assert.equal(
    run.attributes["gen_ai.input.messages"],
    '[{"role":"user","parts":[{"type":"text","content":"secret prompt"}]}]',
  );
  assert.match(run.attributes["gen_ai.output.messages"], /secret answer/);
  const pay = told.find(({ name }) => name === "execute_tool pay");
  assert.equal(pay.attributes["gen_ai.tool.call.arguments"], '{"card":"secret"}');
  assert.match(pay.attributes["gen_ai.tool.call.result"], /secret failure/);
});

test("attempts that fail are spans of their own, and a failed run says of what kind", async () => {
  const spans = [];
  let calls = 0;
  const flaky = () => {
    calls += 1;
    return Promise.reject(Object.assign(new Error("secret reason"), { kind: "overloaded", retryable: true }));
  };
  const retry = { maxAttempts: 2, baseDelayMs: 1 };
  const onEvent = trace((span) => spans.push(span));
  await assert.rejects(new Agent({ model: flaky, retry, onEvent }).run("go"));
  assert.deepEqual(
    spans.map(({ name }) => name),
    [...Array.from({ length: calls }, () => "chat"), "invoke_agent"],
  );
  assert.ok(spans.every(({ error, attributes }) => error.type === attributes["error.type"]));
  assert.ok(!JSON.stringify(spans).includes("secret"));
});
