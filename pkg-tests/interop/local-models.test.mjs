// Models in the browser itself. Their weights cannot be had in a test, so the browser's LanguageModel, WebLLM's engine and wllama are
// played by objects that keep to their interfaces and refuse what those refuse; what is said where there is none is tested in Chromium.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, tool } from "crablet";
import { engineModel, promptApiModel, wllamaModel } from "crablet/local-models";
import { inPage } from "./browser.mjs";

const anything = { type: "object" };

/** The browser's LanguageModel: it answers with these texts, in pieces of a few characters. */
function languageModel(answers, { availability = "available", fails } = {}) {
  const seen = { created: [], prompted: [], destroyed: 0 };
  class Session {
    promptStreaming(input, { signal, ...options } = {}) {
      seen.prompted.push({ input, ...options });
      const answer = answers[seen.prompted.length - 1];
      return new ReadableStream({
        async start(controller) {
          signal?.addEventListener("abort", () => controller.error(signal.reason));
          if (fails) return controller.error(fails);
          for (const piece of answer.match(/.{1,3}/gs) ?? []) {
            if (signal?.aborted) return;
            controller.enqueue(piece);
            await new Promise((resolve) => setImmediate(resolve));
          }
          if (answer !== ENDLESS) controller.close();
        },
      });
    }
    destroy() {
      seen.destroyed += 1;
    }
  }
  const api = {
    availability: async () => availability,
    async create({ initialPrompts = [], monitor, signal, ...options }) {
      signal?.throwIfAborted();
      for (const [index, { role, content }] of initialPrompts.entries()) {
        if (role === "system" && index > 0) throw new TypeError("the system prompt comes first");
        if (!["system", "user", "assistant"].includes(role)) throw new TypeError(`no role ${role}`);
        const parts = typeof content === "string" ? [] : content;
        for (const { type, value } of parts) {
          if (type === "text" && typeof value !== "string") throw new TypeError("no text");
          if (type === "image" && !(value instanceof Blob)) throw new TypeError("no image");
        }
      }
      if (availability === "downloadable") {
        const target = new EventTarget();
        monitor?.(target);
        for (const loaded of [0, 0.5, 1])
          target.dispatchEvent(Object.assign(new Event("downloadprogress"), { loaded }));
      }
      seen.created.push({ initialPrompts, ...options });
      return new Session();
    },
  };
  return { api, seen };
}

const ENDLESS = "on and on and on";

async function deltasOf(run) {
  const deltas = [];
  for await (const event of run) if (event.type === "text-delta") deltas.push(event.delta);
  return deltas;
}

test("the browser's model streams text, is told the conversation, and leaves no session behind", async () => {
  const { api, seen } = languageModel(["Hello there", "Again"], { availability: "downloadable" });
  const loaded = [];
  const model = promptApiModel({
    languageModel: api,
    onDownload: (part) => loaded.push(part),
    create: { temperature: 0.5, topK: 3 },
  });
  const session = new Agent({ model, instructions: "Be brief." }).session();
  assert.deepEqual(await deltasOf(session.send("hi")), ["Hel", "lo ", "the", "re"]);
  const image = { type: "image", mediaType: "image/png", data: "iVBORw0KGgo=" };
  await session.send([{ type: "text", text: "and?" }, image]).result;
  assert.deepEqual(loaded, [0, 0.5, 1, 0, 0.5, 1]);
  const [first, second] = seen.created;
  assert.deepEqual(first, { initialPrompts: [{ role: "system", content: "Be brief." }], temperature: 0.5, topK: 3 });
  assert.deepEqual(second.expectedInputs, [{ type: "text" }, { type: "image" }]);
  assert.deepEqual(second.initialPrompts.slice(1), [
    { role: "user", content: [{ type: "text", value: "hi" }] },
    { role: "assistant", content: "Hello there" },
  ]);
  const [{ content }] = seen.prompted[1].input;
  assert.equal(content[1].value.type, "image/png");
  assert.equal(seen.destroyed, 2);
});

test("the browser's model calls tools by structured output, with approvals, and streams the answer's text", async () => {
  const answers = [
    '{"calls":[{"tool":"weather","input":{"city":"Oslo"}},{"tool":"risky","input":{}}]}',
    '{ "answer" : "It \\"rains\\"\\n\\ud83c\\udf27 and \u{1F327}." }',
  ];
  const { api, seen } = languageModel(answers);
  const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
  const tools = {
    weather: tool({ description: "The weather", input: city, execute: ({ city: name }) => `${name}: rain` }),
    risky: tool({
      description: "Risky",
      input: anything,
      needsApproval: true,
      execute: () => assert.fail("it was not allowed"),
    }),
  };
  const agent = new Agent({ model: promptApiModel({ languageModel: api }), tools, approve: () => false });
  const deltas = await deltasOf(agent.stream("Umbrella?"));
  assert.equal(deltas.join(""), 'It "rains"\n\u{1F327} and \u{1F327}.');
  assert.ok(deltas.length > 5 && deltas.every((delta) => delta.isWellFormed?.() ?? true));
  const [{ responseConstraint, omitResponseConstraintInput }, { input }] = seen.prompted;
  assert.equal(omitResponseConstraintInput, true);
  assert.deepEqual(responseConstraint.anyOf[1].properties.calls.items.anyOf[0].properties, {
    tool: { type: "string", enum: ["weather"] },
    input: city,
  });
  assert.match(seen.created[0].initialPrompts[0].content, /- weather: The weather/);
  assert.match(input[0].content, /^The tool weather gave: Oslo: rain\nThe tool risky failed: /);
  assert.deepEqual(JSON.parse(seen.created[1].initialPrompts[2].content).calls[0], {
    tool: "weather",
    input: { city: "Oslo" },
  });
});

test("an answer of another form is not lost, and an output has its schema", async () => {
  const tools = { nothing: tool({ description: "n", input: anything, execute: () => "" }) };
  const schema = {
    type: "object",
    properties: { n: { type: "number" } },
    required: ["n"],
    additionalProperties: false,
  };
  for (const [answer, text] of [
    ["Just text.", "Just text."],
    ['{"other":1}', '{"other":1}'],
    ['{"answer":"cut', "cut"],
    ['{"answer":[1]}', "[1]"],
    ["null", "null"],
  ]) {
    const { api } = languageModel([answer]);
    assert.equal((await new Agent({ model: promptApiModel({ languageModel: api }), tools }).run("x")).text, text);
  }
  const plain = languageModel(['{"n":4}']);
  const model = promptApiModel({ languageModel: plain.api });
  assert.deepEqual((await new Agent({ model }).run("x", { output: schema })).output, { n: 4 });
  assert.deepEqual(plain.seen.prompted[0].responseConstraint, schema);
  const both = languageModel(['{"answer":{"n":5}}']);
  const agent = new Agent({ model: promptApiModel({ languageModel: both.api }), tools });
  assert.deepEqual((await agent.run("x", { output: schema })).output, { n: 5 });
});

test("the browser's model is aborted, and its failures have kinds", async () => {
  const { api, seen } = languageModel([ENDLESS]);
  const agent = new Agent({ model: promptApiModel({ languageModel: api }) });
  for await (const event of agent.stream("x")) if (event.type === "text-delta") break;
  while (seen.destroyed === 0) await new Promise((resolve) => setImmediate(resolve));
  for (const [name, kind] of [
    ["QuotaExceededError", "context-overflow"],
    ["NotSupportedError", "bad-request"],
    ["NotAllowedError", "overloaded"],
    ["NotReadableError", "content-filter"],
  ]) {
    const failing = languageModel([""], { fails: new DOMException("no", name) });
    const strict = new Agent({
      model: promptApiModel({ languageModel: failing.api }),
      retry: false,
      compaction: false,
    });
    await assert.rejects(strict.run("x"), (error) => error.kind === kind, name);
    assert.equal(failing.seen.destroyed, 1);
  }
});

test("where the browser has no model it says so, and another answers", async () => {
  await inPage(
    () => undefined,
    async (page) => {
      const seen = await page.evaluate(() => window.local());
      assert.ok(["none", "unavailable"].includes(seen.availability), seen.availability);
      assert.equal(seen.kind, "overloaded");
      assert.match(seen.message, /LanguageModel|not available/);
      assert.equal(seen.text, "from elsewhere");
      assert.equal(seen.waits, 0);
    },
  );
});

const chunk = (delta, finish_reason = null) => ({ choices: [{ index: 0, delta, finish_reason }] });
const counted = { choices: [], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } };
const spoken = (text) => [
  ...(text.match(/.{1,4}/gs) ?? []).map((content) => chunk({ content })),
  chunk({}, "stop"),
  counted,
];

/** WebLLM's engine: one answer at a time, interrupted by a call, which ends it like one that is whole. */
function webLlm(answers) {
  const requests = [];
  const engine = {
    isInterrupted: false,
    interruptGenerate() {
      this.isInterrupted = true;
    },
    chat: {
      completions: {
        async create(request) {
          if (request.response_format?.type === "json_object") JSON.parse(request.response_format.schema);
          else if (request.response_format) throw new Error("this engine knows json_object with a schema as text");
          if (request.tools) throw new Error("this model knows no tools");
          requests.push(request);
          const answer = answers[requests.length - 1];
          if (answer instanceof Error) throw answer;
          return (async function* () {
            for (let index = 0; answer === ENDLESS || index < answer.length; index += 1) {
              if (engine.isInterrupted) return yield chunk({}, "abort");
              yield answer === ENDLESS ? chunk({ content: "on " }) : answer[index];
              await new Promise((resolve) => setImmediate(resolve));
            }
          })();
        },
      },
    },
  };
  return { engine, requests };
}

test("WebLLM streams, calls tools by structured output, counts, is loaded once and interrupted", async () => {
  const { engine, requests } = webLlm([
    spoken('{"calls":[{"tool":"add","input":{"a":1,"b":2}}]}'),
    spoken('{"answer":"It is 3."}'),
    ENDLESS,
    new Error("Prompt tokens exceed context window size: number of prompt tokens: 5000; context window size: 4096"),
  ]);
  let loads = 0;
  const load = async () => {
    loads += 1;
    if (loads === 1) throw new Error("no GPU yet");
    return engine;
  };
  const add = tool({ description: "Adds", input: anything, execute: ({ a, b }) => a + b });
  const agent = new Agent({
    model: engineModel(load, { request: { temperature: 0 } }),
    tools: { add },
    retry: false,
    compaction: false,
  });
  await assert.rejects(agent.run("x"), (error) => error.kind === "server" && /no GPU yet/.test(error.message));
  const { text, usage } = await agent.run("1 + 2?");
  assert.equal(text, "It is 3.");
  assert.deepEqual(usage, { inputTokens: 14, outputTokens: 6 });
  assert.equal(loads, 2);
  assert.equal(requests[0].temperature, 0);
  assert.deepEqual(requests[1].messages.at(-1), { role: "user", content: "The tool add gave: 3" });
  const run = agent.stream("x");
  const result = run.result.catch(() => {});
  while (requests.length < 3) await new Promise((resolve) => setImmediate(resolve));
  run.abort();
  await result;
  assert.equal(engine.isInterrupted, true);
  await assert.rejects(agent.run("x"), (error) => error.kind === "context-overflow");
});

test("wllama streams with calls of its own, and takes the signal", async () => {
  const requests = [];
  const called = (index, delta) => chunk({ tool_calls: [{ index, ...delta }] });
  const answers = [
    [
      chunk({ reasoning_content: "hm" }),
      chunk({ content: "let me " }),
      called(0, { id: "c1", type: "function", function: { name: "add", arguments: '{"a":' } }),
      called(1, { id: "c2", type: "function", function: { name: "add", arguments: "" } }),
      called(0, { function: { arguments: "1}" } }),
      chunk({}, "tool_calls"),
      counted,
    ],
    [...spoken("done").slice(0, -2), chunk({}, "length")],
    spoken('{"n":4}'),
  ];
  const wllama = {
    async createChatCompletion(request) {
      requests.push(request);
      const answer = answers[requests.length - 1];
      if (answer !== undefined)
        return (async function* () {
          yield* answer;
        })();
      return (async function* () {
        yield chunk({ content: "on" });
        await new Promise((_, reject) =>
          request.abortSignal.addEventListener("abort", () => reject(request.abortSignal.reason)),
        );
      })();
    },
  };
  const seen = [];
  const add = tool({ description: "Adds", input: anything, execute: (input) => seen.push(input) });
  const agent = new Agent({ model: wllamaModel(wllama), tools: { add } });
  const session = agent.session();
  await session.send("go").result;
  assert.deepEqual(seen, [{ a: 1 }, {}]);
  assert.equal(session.getState().messages.at(-1).stopReason, "length");
  assert.deepEqual(requests[0].tools[0].function, { name: "add", description: "Adds", parameters: anything });
  assert.deepEqual(
    requests[1].messages.map(({ role, tool_call_id: id }) => [role, id]),
    [
      ["user", undefined],
      ["assistant", undefined],
      ["tool", "c1"],
      ["tool", "c2"],
    ],
  );
  const schema = {
    type: "object",
    properties: { n: { type: "number" } },
    required: ["n"],
    additionalProperties: false,
  };
  assert.deepEqual((await new Agent({ model: wllamaModel(wllama) }).run("x", { output: schema })).output, { n: 4 });
  assert.deepEqual(requests[2].response_format.json_schema.schema, schema);
  for await (const event of agent.stream("x")) if (event.type === "text-delta") break;
  assert.equal(requests[3].abortSignal.aborted, true);
});
