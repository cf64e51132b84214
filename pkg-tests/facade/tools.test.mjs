// What a tool promises: its input, its output, its failure, its signal, who is asked before it runs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, tool, toolOutput } from "crablet";
import { scriptedModel } from "crablet/test";
import { z } from "zod";
import { collect, deferred, types } from "./support.mjs";

const anything = { type: "object" };
const call = (toolName, input = {}, callId) => ({ type: "tool-call", toolName, input, ...(callId && { callId }) });

/** Runs one batch of calls, then an answer; gives the results by call id, the events and what the model was asked. */
async function runCalls(calls, tools, options = {}) {
  const model = scriptedModel([calls, "done"]);
  const events = await collect(new Agent({ model, tools, ...options }).stream("go"));
  const results = events.filter(({ type }) => type === "tool-result");
  return { results, events, model, told: model.requests[1]?.messages.at(-1).content };
}

test("a Standard Schema is told to the model and checks the input", async () => {
  const seen = [];
  const tools = {
    add: tool({
      description: "adds",
      input: z.object({ a: z.number(), b: z.coerce.number().default(5) }),
      execute: ({ a, b }) => {
        seen.push([a, b]);
        return { sum: a + b };
      },
    }),
  };
  const { results, told, model } = await runCalls(
    [call("add", { a: 1 }, "one"), call("add", { a: "x" }, "two")],
    tools,
  );
  assert.equal(model.requests[0].tools[0].inputSchema.type, "object");
  assert.deepEqual(seen, [[1, 5]], "only the valid call ran, with the validator's output");
  assert.deepEqual(results.find(({ callId }) => callId === "one").output, { sum: 6 });
  assert.equal(results.find(({ callId }) => callId === "two").isError, true);
  assert.equal(told[0].content[0].text, '{"sum":6}');
});

test("a validator's own rules are told to the model", async () => {
  const input = z.object({ city: z.string().refine((city) => city !== "Atlantis", "there is no such city") });
  const tools = { look: tool({ description: "l", input, execute: () => "never" }) };
  const { results } = await runCalls([call("look", { city: "Atlantis" })], tools);
  assert.equal(results[0].isError, true);
  assert.match(String(results[0].output), /city: there is no such city/);
});

test("a schema that cannot print itself is refused where the tool is made", () => {
  const input = { "~standard": { version: 1, vendor: "plain", validate: (value) => ({ value }) } };
  assert.throws(() => tool({ description: "x", input, execute: () => 1 }), /plain schema cannot print itself/);
  const made = tool({ description: "x", input: { schema: input, jsonSchema: anything }, execute: () => 1 });
  assert.equal(typeof made.execute, "function");
});

test("a tool without a schema is refused", () => {
  for (const input of [undefined, null, "string"])
    assert.throws(() => tool({ description: "x", input, execute: () => 1 }), {
      kind: "invalid-input",
      message: /"x" needs an input schema/,
    });
});

test("what a tool throws is a failed result, and the run goes on", async () => {
  const tools = {
    bad: tool({ description: "b", input: anything, execute: () => Promise.reject(new Error("the disk is full")) }),
    worse: tool({
      description: "w",
      input: anything,
      execute: () => {
        throw undefined;
      },
    }),
    circular: tool({ description: "c", input: anything, execute: () => ({ big: 1n }) }),
  };
  const { results, events } = await runCalls([call("bad"), call("worse"), call("circular"), call("missing")], tools);
  assert.equal(results.length, 4);
  assert.ok(results.every(({ isError }) => isError));
  assert.match(String(results.find(({ toolName }) => toolName === "bad").output), /the disk is full/);
  assert.match(String(results.find(({ toolName }) => toolName === "circular").output), /cannot be written as JSON/);
  assert.equal(events.at(-1).stopReason, "stop");
});

test("what JSON cannot hold is a failed result that says so, and an error that is returned is one that is thrown", async () => {
  const giving = (value) => tool({ description: "t", input: anything, execute: () => value });
  const refused = {
    map: new Map([[1, 2]]),
    set: new Set([1]),
    response: new Response("text"),
    bytes: new Uint8Array([1, 2, 3]),
    buffer: Buffer.from("abc"),
    fn: () => 1,
    symbol: Symbol("s"),
    generator: (function* () {})(),
    number: toolOutput({ content: 7 }),
    parts: toolOutput({ content: [{ type: "image_url", url: "https://example.com" }] }),
  };
  const tools = Object.fromEntries(Object.entries(refused).map(([name, value]) => [name, giving(value)]));
  const { results } = await runCalls(
    Object.keys(tools).map((name) => call(name)),
    tools,
  );
  for (const { toolName, isError, output } of results) {
    assert.equal(isError, true, toolName);
    assert.match(String(output), /cannot give a|neither text nor/, toolName);
  }
  const told = {
    error: [new Error("the disk is full"), "the disk is full"],
    date: [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    url: [new URL("https://example.com/"), '"https://example.com/"'],
    nothing: [null, "null"],
    empty: [{}, "{}"],
    bare: [Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    own: [
      new (class Point {
        x = 1;
      })(),
      '{"x":1}',
    ],
    flag: [false, "false"],
  };
  const plain = Object.fromEntries(Object.entries(told).map(([name, [value]]) => [name, giving(value)]));
  const asked = await runCalls(
    Object.keys(plain).map((name) => call(name)),
    plain,
  );
  for (const { toolName, isError, content } of asked.told) {
    assert.deepEqual([isError, content[0].text], [toolName === "error", told[toolName][1]], toolName);
  }
});

test("toolOutput gives files to the model and details to the user interface", async () => {
  const image = { type: "image", mediaType: "image/png", data: "AAAA" };
  const tools = {
    draw: tool({
      description: "d",
      input: anything,
      execute: () => toolOutput({ content: [{ type: "text", text: "here" }, image] }),
    }),
  };
  const { told } = await runCalls([call("draw")], tools);
  assert.deepEqual(told[0].content, [{ type: "text", text: "here" }, image]);
});

test("calls of one step run side by side, and results enter the history in their order", async () => {
  const first = deferred();
  const tools = {
    slow: tool({ description: "s", input: anything, execute: () => first.promise }),
    quick: tool({
      description: "q",
      input: anything,
      execute: () => {
        first.resolve("slow is done");
        return "quick";
      },
    }),
  };
  const { told } = await runCalls([call("slow", {}, "a"), call("quick", {}, "b")], tools);
  assert.deepEqual(
    told.map(({ callId }) => callId),
    ["a", "b"],
  );
});

test("progress is told while the tool runs", async () => {
  const tools = {
    work: tool({
      description: "w",
      input: anything,
      execute: async (_input, { progress }) => {
        progress({ percent: 50 });
        await new Promise((resolve) => setTimeout(resolve, 1));
        return "done";
      },
    }),
  };
  const { events } = await runCalls([call("work")], tools);
  const progress = events.find(({ type }) => type === "tool-progress");
  assert.deepEqual(progress.data, { percent: 50 });
});

test("aborting in the middle of a tool aborts its signal and closes every call", async () => {
  const started = deferred();
  let signal;
  const tools = {
    hang: tool({
      description: "h",
      input: anything,
      execute: (_input, context) => {
        signal = context.signal;
        started.resolve();
        return new Promise(() => {});
      },
    }),
  };
  const run = new Agent({ model: scriptedModel([[call("hang", {}, "a"), call("hang", {}, "b")]]), tools }).stream("go");
  const events = collect(run);
  await started.promise;
  run.abort();
  assert.equal(signal.aborted, true, "before abort() returns");
  const seen = types(await events);
  assert.equal(seen.filter((type) => type === "tool-result").length, 2);
  assert.equal(seen.at(-1), "run-end");
  await assert.rejects(run.result);
});

test("a tool that takes too long is cancelled and reported", async () => {
  let signal;
  const tools = {
    hang: tool({
      description: "h",
      input: anything,
      timeoutMs: 20,
      execute: (_input, context) => {
        signal = context.signal;
        return new Promise(() => {});
      },
    }),
  };
  const { results } = await runCalls([call("hang")], tools);
  assert.equal(results[0].isError, true);
  assert.equal(signal.aborted, true);
});

test("approve decides about tools that need an approval", async () => {
  const ran = [];
  const asked = [];
  const tools = {
    remove: tool({
      description: "r",
      input: anything,
      needsApproval: ({ path }) => path !== "safe",
      execute: ({ path }) => {
        ran.push(path);
        return "removed";
      },
    }),
  };
  const calls = [call("remove", { path: "safe" }), call("remove", { path: "a" }), call("remove", { path: "b" })];
  const { results } = await runCalls(calls, tools, {
    approve: ({ toolName, input }) => {
      asked.push([toolName, input.path]);
      return input.path === "a";
    },
  });
  assert.deepEqual(asked.sort(), [
    ["remove", "a"],
    ["remove", "b"],
  ]);
  assert.deepEqual(ran.sort(), ["a", "safe"]);
  assert.equal(results.filter(({ isError }) => isError).length, 1);
});

test("beforeToolCall changes and denies, afterToolCall changes the result", async () => {
  const seen = [];
  const tools = {
    echo: tool({
      description: "e",
      input: anything,
      execute: ({ say }) => {
        seen.push(say);
        return say;
      },
    }),
  };
  const { results } = await runCalls([call("echo", { say: "a" }, "a"), call("echo", { say: "b" }, "b")], tools, {
    beforeToolCall: ({ input }) =>
      input.say === "a" ? { action: "change", input: { say: "A" } } : { action: "deny", reason: "not b" },
    afterToolCall: (_call, { content }) => ({ content: `${content[0].text}!` }),
  });
  assert.deepEqual(seen, ["A"]);
  assert.equal(results.find(({ callId }) => callId === "a").output, "A!");
  assert.match(String(results.find(({ callId }) => callId === "b").output), /not b/);
});

test("a hook that throws before a call denies it", async () => {
  const tools = { echo: tool({ description: "e", input: anything, execute: () => "ran" }) };
  const { results } = await runCalls([call("echo")], tools, {
    beforeToolCall: () => {
      throw new Error("the hook is broken");
    },
  });
  assert.equal(results[0].isError, true);
  assert.match(String(results[0].output), /the hook is broken/);
});
