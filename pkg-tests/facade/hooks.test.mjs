// What hooks promise: when they are asked, what they may change, what their failure does, and that they cost nothing otherwise.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, openaiCompatible, tool, toolOutput } from "crablet";
import { scriptedFetch, scriptedModel } from "crablet/test";
import { collect, types } from "./support.mjs";

const anything = { type: "object" };
const call = (toolName, input = {}, callId) => ({ type: "tool-call", toolName, input, ...(callId && { callId }) });
const ok = () => tool({ description: "t", input: anything, execute: () => "ok" });
const texts = (messages) => messages.map(({ role, content }) => `${role}: ${content[0].text ?? content[0].type}`);

test("prepareStep chooses model, tools and instructions for one step", async () => {
  const usual = scriptedModel([[call("b")], "done"]);
  const other = scriptedModel([[call("a"), call("b")]]);
  const steps = [];
  const agent = new Agent({
    model: usual,
    instructions: "usual",
    tools: { a: ok(), b: ok() },
    prepareStep: async ({ step, messages }) => {
      steps.push([step, messages.length]);
      return step === 1 ? { model: other, instructions: "other", activeTools: ["b"] } : undefined;
    },
  });
  const { text, messages } = await agent.run("go");
  assert.equal(text, "done");
  assert.deepEqual(steps, [
    [0, 1],
    [1, 3],
    [2, 5],
  ]);
  assert.equal(other.requests[0].instructions, "other");
  assert.deepEqual(
    other.requests[0].tools.map(({ name }) => name),
    ["b"],
  );
  const results = messages.filter(({ role }) => role === "tool").at(-1).content;
  assert.deepEqual(
    results.map(({ isError }) => isError),
    [true, false],
    "a tool that is not active in the step does not run",
  );
});

test("a model that prepareStep chooses is called with its own key", async () => {
  const sse = (text) => ({
    chunks: [
      `data: {"choices":[{"index":0,"delta":{"content":"${text}"}}]}\n\n`,
      'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    ],
  });
  const fetch = scriptedFetch([sse("one"), sse("two")]);
  const model = (id, apiKey) => openaiCompatible(id, { baseUrl: "https://models.test/v1", apiKey, fetch });
  let first = true;
  const agent = new Agent({
    model: model("usual", "key-of-the-usual-model"),
    prepareStep: () => (first ? undefined : { model: model("other", () => "key-of-the-other-model") }),
  });
  await agent.run("go");
  first = false;
  await agent.run("go");
  assert.deepEqual(
    fetch.requests.map(({ headers, body }) => [headers.get("authorization"), JSON.parse(body).model]),
    [
      ["Bearer key-of-the-usual-model", "usual"],
      ["Bearer key-of-the-other-model", "other"],
    ],
  );
});

test("prepareContext edits what is sent by message id, and sees the same objects from step to step", async () => {
  const model = scriptedModel([[call("a")], "done", "again"]);
  const seen = [];
  const session = new Agent({
    model,
    tools: { a: ok() },
    prepareContext: ({ messages }) => {
      seen.push(messages);
      const note = { role: "user", content: [{ type: "text", text: "a note" }] };
      if (messages.length === 1) return [{ insert: note, before: messages[0].id }];
      if (messages.length === 3) return [{ replace: messages[0].id, with: note }, { insert: note }];
      return [{ keep: messages.slice(-3).map(({ id }) => id) }, { drop: messages.at(-3).id }];
    },
  }).session();
  await session.send("first").result;
  await session.send("second").result;
  assert.deepEqual(texts(model.requests[0].messages), ["user: a note", "user: first"]);
  assert.deepEqual(texts(model.requests[1].messages), [
    "user: a note",
    "assistant: tool-call",
    "tool: tool-result",
    "user: a note",
  ]);
  assert.deepEqual(texts(model.requests[2].messages), ["assistant: done", "user: second"]);
  assert.equal(seen[1][0], seen[0][0], "what was told is not told again");
  assert.ok(Object.isFrozen(seen[0]));
  assert.equal(session.getState().messages.length, 6, "the conversation stays as it is");
});

test("callModel of a hook counts in the usage of the run, and its failure is the hook's to handle", async () => {
  const usage = { type: "usage", inputTokens: 7, outputTokens: 3 };
  const summariser = scriptedModel([[{ type: "text-delta", delta: "in short" }, usage], new Error("it is tired")]);
  const failures = [];
  const agent = new Agent({
    model: scriptedModel([["one", usage], "two"]),
    prepareContext: async ({ callModel, messages }) => {
      try {
        const { text } = await callModel({ prompt: messages, instructions: "Summarise.", model: summariser });
        return [{ replace: messages[0].id, with: { role: "user", content: [{ type: "text", text }] } }];
      } catch (error) {
        failures.push(error.message);
        return undefined;
      }
    },
  });
  const first = await agent.run("a long story");
  assert.deepEqual(first.usage, { inputTokens: 14, outputTokens: 6 });
  assert.equal(summariser.requests[0].instructions, "Summarise.");
  const { text } = await agent.run("another");
  assert.equal(text, "two");
  assert.match(failures[0], /tired/);
});

test("an abort rejects callModel and stops its model", async () => {
  let aborted;
  async function* slow(_request, { signal }) {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    aborted = signal.aborted;
    yield "late";
  }
  const errors = [];
  const controller = new AbortController();
  const agent = new Agent({
    model: scriptedModel(["never"]),
    prepareContext: async ({ callModel }) => {
      setTimeout(() => controller.abort(), 0);
      await callModel({ prompt: "x", model: slow }).catch((error) => errors.push(error.kind));
    },
  });
  await assert.rejects(agent.run("go", { signal: controller.signal }), { name: "AbortError" });
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(errors, ["aborted"]);
  assert.equal(aborted, true);
});

test("formatRequest changes the body that is sent", async () => {
  const fetch = scriptedFetch([
    { chunks: ['data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'] },
  ]);
  const model = openaiCompatible("m", { baseUrl: "https://models.test/v1", apiKey: "secret-key", fetch });
  const seen = [];
  const formatRequest = async (body, { model }) => {
    seen.push([body.messages.length, model.id, JSON.stringify(body).includes("secret-key")]);
    return { ...body, metadata: { tenant: "t1" } };
  };
  await new Agent({ model, formatRequest }).run("go");
  assert.deepEqual(seen, [[1, "m", false]]);
  assert.deepEqual(JSON.parse(fetch.requests[0].body).metadata, { tenant: "t1" });
});

test("stopWhen sees the steps and ends the run after a batch", async () => {
  const seen = [];
  const { stopReason, steps } = await new Agent({
    model: scriptedModel([[call("a")], [call("a")], "never"]),
    tools: { a: ok() },
    stopWhen: async (steps) => {
      seen.push(steps.map(({ index, message }) => [index, message.content[0].toolName]));
      return steps.length === 2;
    },
  }).run("go");
  assert.equal(stopReason, "terminated");
  assert.equal(steps.length, 2);
  assert.deepEqual(seen, [
    [[0, "a"]],
    [
      [0, "a"],
      [1, "a"],
    ],
  ]);
});

test("a hook that throws before a model call or after a step ends the run; one around a tool call does not", async () => {
  const fail = () => {
    throw new Error("the hook is broken");
  };
  for (const name of ["prepareStep", "prepareContext", "stopWhen"]) {
    const agent = new Agent({ model: scriptedModel([[call("a")], "never"]), tools: { a: ok() }, [name]: fail });
    await assert.rejects(agent.run("go"), (error) => error.kind === "invalid-input" && error.message.includes(name));
  }
  for (const name of ["beforeToolCall", "afterToolCall"]) {
    const model = scriptedModel([[call("a")], "done"]);
    const { text } = await new Agent({ model, tools: { a: ok() }, [name]: fail }).run("go");
    assert.equal(text, "done");
    const [result] = model.requests[1].messages.at(-1).content;
    assert.equal(result.isError, true);
    assert.match(result.content[0].text, /the hook is broken/);
  }
});

test("a hook that takes too long denies a call", async () => {
  const model = scriptedModel([[call("a")], "done"]);
  const beforeToolCall = () => new Promise(() => {});
  await new Agent({ model, tools: { a: ok() }, beforeToolCall, hookTimeoutMs: 10 }).run("go");
  assert.match(model.requests[1].messages.at(-1).content[0].content[0].text, /within 10 ms/);
});

test("input that a hook changes is validated again", async () => {
  const given = [];
  const input = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
  const tools = { a: tool({ description: "a", input, execute: ({ n }) => given.push(n) }) };
  const model = scriptedModel([[call("a", { n: 1 }, "x"), call("a", { n: 2 }, "y")], "done"]);
  const beforeToolCall = ({ callId }) => ({ action: "change", input: { n: callId === "x" ? 10 : "no number" } });
  await new Agent({ model, tools, beforeToolCall }).run("go");
  assert.deepEqual(given, [10]);
  assert.match(model.requests[1].messages.at(-1).content[1].content[0].text, /do not fit/);
});

test("what beforeToolCall answers besides its four answers lets no call through", async () => {
  const nonsense = [false, true, 0, "deny", {}, [], { action: "block" }, { action: "continue" }, { allow: true }];
  for (const answer of nonsense) {
    const ran = [];
    const a = tool({ description: "a", input: anything, needsApproval: () => true, execute: () => ran.push("a") });
    const b = tool({ description: "b", input: anything, execute: () => ran.push("b") });
    const model = scriptedModel([[call("a"), call("b")], "done"]);
    await new Agent({ model, tools: { a, b }, beforeToolCall: () => answer, approve: () => true }).run("go");
    assert.deepEqual(ran, [], JSON.stringify(answer));
    const { content } = model.requests[1].messages.at(-1).content[0];
    assert.match(content[0].text, /The hook before a failed and it was not run/);
  }
  for (const answer of [undefined, null, { action: "allow" }]) {
    const model = scriptedModel([[call("a")], "done"]);
    await new Agent({ model, tools: { a: ok() }, beforeToolCall: () => answer }).run("go");
    assert.equal(model.requests[1].messages.at(-1).content[0].isError, false);
  }
});

test("what afterToolCall answers without a result does not take the result away", async () => {
  for (const answer of [true, "text", 7, [], {}, { isError: true }, { content: 7 }]) {
    const model = scriptedModel([[call("a")], "done"]);
    await new Agent({ model, tools: { a: ok() }, afterToolCall: () => answer }).run("go");
    const [{ isError, content }] = model.requests[1].messages.at(-1).content;
    assert.equal(isError, true, JSON.stringify(answer));
    assert.match(content[0].text, /The hook after a failed/);
  }
});

test("a function that says what needs an approval is asked about the input that a hook gives", async () => {
  for (const [n, allowed] of [
    [5, false],
    [5, true],
    [0, true],
  ]) {
    const asked = [];
    const given = [];
    const needsApproval = ({ n }) => n > 1;
    const tools = { a: tool({ description: "a", input: anything, needsApproval, execute: ({ n }) => given.push(n) }) };
    const approve = ({ input }) => {
      asked.push(input.n);
      return allowed;
    };
    const beforeToolCall = () => ({ action: "change", input: { n } });
    const model = scriptedModel([[call("a", { n: 1 })], "done"]);
    await new Agent({ model, tools, approve, beforeToolCall }).run("go");
    assert.deepEqual(asked, n > 1 ? [n] : []);
    assert.deepEqual(given, allowed ? [n] : []);
  }
});

test("onEvent sees every event and cannot break the run", async () => {
  const seen = [];
  const reported = [];
  const { error } = console;
  console.error = (...given) => reported.push(given);
  try {
    const onEvent = (event) => {
      seen.push(event.type);
      if (event.type === "step-start") throw new Error("the observer is broken");
      if (event.type === "step-end") return Promise.reject(new Error("later too"));
    };
    const events = await collect(new Agent({ model: scriptedModel(["done"]), onEvent }).stream("go"));
    assert.deepEqual(seen, types(events));
    await new Promise((resolve) => setTimeout(resolve));
  } finally {
    console.error = error;
  }
  assert.equal(reported.length, 2);
});

test("terminate ends the run when every call asks for it, or when one does", async () => {
  const tools = {
    end: tool({ description: "e", input: anything, execute: () => toolOutput({ content: "bye", terminate: true }) }),
    other: ok(),
  };
  const calls = [[call("end"), call("other")], "done"];
  const all = await new Agent({ model: scriptedModel(calls), tools }).run("go");
  assert.equal(all.stopReason, "stop");
  const any = await new Agent({ model: scriptedModel(calls), tools, terminate: "any" }).run("go");
  assert.equal(any.stopReason, "terminated");
});
