// What keeps a run within bounds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, tool } from "crablet";
import { scriptedModel } from "crablet/test";
import { collect, deferred, endless } from "./support.mjs";

const anything = { type: "object" };
const call = (toolName, input = {}, callId) => ({ type: "tool-call", toolName, input, ...(callId && { callId }) });
const usage = { type: "usage", inputTokens: 90, outputTokens: 10 };
const limit = (events) => events.find(({ type }) => type === "limit-reached")?.limit;

test("steps, tokens and time each end a run, which says which", async () => {
  const tools = { a: tool({ description: "a", input: anything, execute: () => String(Math.random()) }) };
  const always = (extra = []) => scriptedModel(Array.from({ length: 9 }, () => [call("a"), ...extra]));
  const steps = await collect(new Agent({ model: always(), tools, maxSteps: 2 }).stream("go"));
  assert.equal(limit(steps), "steps");
  const tokens = await collect(new Agent({ model: always([usage]), tools, maxTokens: 150 }).stream("go"));
  assert.equal(limit(tokens), "tokens");
  assert.deepEqual(tokens.at(-1).usage, { inputTokens: 180, outputTokens: 20 });
  const time = [];
  const run = new Agent({ model: endless(), timeoutMs: 20 }).stream("go");
  await assert.rejects(
    (async () => {
      for await (const event of run) time.push(event);
    })(),
    { kind: "timeout" },
  );
  assert.equal(limit(time), "time");
});

test("a model that goes round in a circle is told so, then stopped", async () => {
  const tools = { a: tool({ description: "a", input: anything, execute: () => "same" }) };
  const model = scriptedModel(Array.from({ length: 9 }, () => [call("a")]));
  const events = await collect(new Agent({ model, tools, maxIdenticalSteps: 2 }).stream("go"));
  assert.equal(limit(events), "loop");
  assert.equal(model.requests.length, 3);
  assert.equal(model.requests[2].messages.at(-1).origin, "nudge");
});

test("no more tools are at work than the agent allows, and of one tool than it allows", async () => {
  const open = [];
  let atWork = 0;
  let most = 0;
  const work = () => {
    atWork += 1;
    most = Math.max(most, atWork);
    const gate = deferred();
    open.push(gate);
    return gate.promise.finally(() => {
      atWork -= 1;
    });
  };
  const finish = async (run) => {
    for await (const event of run) if (event.type === "tool-start") open.shift()?.resolve("ok");
  };
  const calls = Array.from({ length: 5 }, () => call("t"));
  for (const [options, tools, expected] of [
    [{ maxConcurrentTools: 3 }, { t: tool({ description: "t", input: anything, execute: work }) }, 3],
    [{}, { t: tool({ description: "t", input: anything, execute: work, maxConcurrent: 2 }) }, 2],
    [{}, { t: tool({ description: "t", input: anything, execute: work, sequential: true }) }, 1],
  ]) {
    most = 0;
    const run = new Agent({ model: scriptedModel([calls, "done"]), tools, ...options }).stream("go");
    const finished = finish(run);
    const timer = setInterval(() => open.shift()?.resolve("ok"), 1);
    await finished;
    clearInterval(timer);
    assert.ok(most <= expected, `${most} at work, ${expected} allowed`);
  }
});

test("of a long result the model reads beginning and end, and the whole can be had", async () => {
  const whole = "line\n".repeat(1000);
  const tools = { log: tool({ description: "l", input: anything, execute: () => whole }) };
  const model = scriptedModel([[call("log")], "done"]);
  const events = await collect(new Agent({ model, tools, maxResultCharacters: 100 }).stream("go"));
  assert.ok(model.requests[1].messages.at(-1).content[0].content[0].text.length < 200);
  assert.equal(events.find(({ type }) => type === "tool-result").output, whole);
});

test("the model reads the rest of a long result where it may", async () => {
  const whole = Array.from({ length: 100 }, (_, number) => `line ${number}`).join("\n");
  const tools = { log: tool({ description: "l", input: anything, execute: () => whole }) };
  const model = scriptedModel([[call("log", {}, "c1")], [call("readResult", { callId: "c1", offset: 200 })], "done"]);
  await new Agent({ model, tools, maxResultCharacters: 300, resultReader: true }).run("go");
  assert.ok(model.requests[0].tools.some(({ name }) => name === "readResult"));
  const [read] = model.requests[2].messages.at(-1).content;
  assert.ok(read.content[0].text.startsWith(whole.slice(200, 460)));
});

test("a tool that takes too long is stopped and its signal aborts", async () => {
  let signal;
  const execute = (_input, context) => {
    signal = context.signal;
    return new Promise(() => {});
  };
  const tools = { slow: tool({ description: "s", input: anything, timeoutMs: 10, execute }) };
  const model = scriptedModel([[call("slow")], "done"]);
  assert.equal((await new Agent({ model, tools }).run("go")).text, "done");
  assert.equal(signal.aborted, true);
  assert.match(model.requests[1].messages.at(-1).content[0].content[0].text, /within 10 ms/);
});

test("a limit that is none is refused, and not taken for no limit", async () => {
  const wrong = [
    { maxSteps: "10" },
    { maxSteps: -1 },
    { maxSteps: Number.NaN },
    { maxTokens: Number.POSITIVE_INFINITY },
    { maxCost: "half a dollar" },
    { maxCost: Number.NaN },
    { timeoutMs: 1.5 },
    { approvalTimeoutMs: "1s" },
    { maxConcurrentTools: {} },
    { maxResultCharacters: "many" },
    { terminate: "some" },
    { discovery: { pageSize: -1 } },
    { compaction: { thresholdTokens: "x" } },
    { retry: { maxAttempts: "3" } },
  ];
  for (const options of wrong) {
    const [[name, value]] = Object.entries(options);
    const [said] = typeof value === "object" && name !== "maxConcurrentTools" ? Object.keys(value) : [name];
    const model = scriptedModel(["done"]);
    await assert.rejects(
      new Agent({ model, ...options }).run("go"),
      ({ kind, message }) => kind === "invalid-input" && message.includes(`${said} must be`),
      JSON.stringify(options),
    );
    assert.equal(model.requests.length, 0);
  }
  const tools = { a: tool({ description: "a", input: anything, timeoutMs: "1s", execute: () => "a" }) };
  await assert.rejects(new Agent({ model: scriptedModel(["done"]), tools }).run("go"), { kind: "invalid-input" });
});
