// Runs by a script, in the temporary project of the packed package: prints for each its events and the saved session, with ids,
// times and waits made the same each time. What it prints is held against events/ and sessions/.
import { Agent, anthropic, CrabletError, openai, openaiCompatible, subAgent, tool, toolOutput } from "crablet";
import { scriptedFetch, scriptedModel } from "crablet/test";

const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const weather = tool({
  description: "The weather of a city",
  input: city,
  execute: ({ city: name }) => `rain in ${name}`,
});
const call = (toolName, callId, input = {}) => ({ type: "tool-call", toolName, callId, input });
const usage = { type: "usage", inputTokens: 10, outputTokens: 5 };
const retry = { maxAttempts: 3, baseDelayMs: 1, maxDelayMs: 1 };

const sse = (events) => events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
const lines = (chunks) => [...chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`), "data: [DONE]\n\n"];

/** An answer of Anthropic Messages: reasoning with its signature, then text. */
const anthropicAnswer = sse([
  {
    type: "message_start",
    message: {
      id: "m",
      model: "claude",
      role: "assistant",
      content: [],
      usage: { input_tokens: 12, output_tokens: 1 },
    },
  },
  { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Oslo is wet." } },
  { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "c2lnbmVk" } },
  { type: "content_block_stop", index: 0 },
  { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Take an " } },
  { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "umbrella ☂." } },
  { type: "content_block_stop", index: 1 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 9 } },
  { type: "message_stop" },
]);

const delta = (given, finish = null) => ({ choices: [{ index: 0, delta: given, finish_reason: finish }] });
const called = (index, id, name, text) => ({ index, id, type: "function", function: { name, arguments: text } });

/** Two calls of Chat Completions, their inputs in pieces. */
const chatCalls = lines([
  delta({ role: "assistant", content: "Let me see." }),
  delta({ tool_calls: [called(0, "call_a", "weather", ""), called(1, "call_b", "weather", '{"city":')] }),
  delta({ tool_calls: [{ index: 0, function: { arguments: '{"city":"Oslo"}' } }] }),
  delta({ tool_calls: [{ index: 1, function: { arguments: '"Rome"}' } }] }),
  delta({}, "tool_calls"),
  { choices: [], usage: { prompt_tokens: 20, completion_tokens: 8, total_tokens: 28 } },
]);

const chatText = (text) =>
  lines([
    delta({ role: "assistant", content: text }),
    delta({}, "stop"),
    { choices: [], usage: { prompt_tokens: 30, completion_tokens: 4, total_tokens: 34 } },
  ]);

const compatible = (responses) =>
  openaiCompatible("any", { baseUrl: "http://model.invalid/v1", fetch: scriptedFetch(responses) });

/** A session and its events, from runs one after the other; and the session as it was when it waited for a person. */
async function record(agent, prompts, { options, during, leaves = false, session = agent.session() } = {}) {
  const events = [];
  let saved = session;
  for (const prompt of prompts) {
    const run = prompt === undefined ? session.resume() : session.send(prompt, options);
    try {
      for await (const event of run) {
        events.push(event);
        // Who leaves the loop aborts the run.
        if (event.type === "run-suspended") saved = agent.session(JSON.parse(JSON.stringify(session)));
        during?.(event, run);
        if (event.type === "run-suspended" && leaves) break;
      }
    } catch {
      // The last event says it.
    }
  }
  return { events, saved };
}

const RUNS = {
  "reasoning-and-text": () => {
    const fetch = scriptedFetch([{ chunks: anthropicAnswer }]);
    const model = anthropic("claude-sonnet-5", { apiKey: "key", fetch, baseUrl: "http://model.invalid" });
    return record(new Agent({ model }), ["Umbrella in Oslo?"]);
  },

  "parallel-tools": () => {
    const model = compatible([{ chunks: chatCalls }, { chunks: chatText("Rain in both.") }]);
    return record(new Agent({ model, tools: { weather }, maxConcurrentTools: 1 }), ["Oslo and Rome?"]);
  },

  "responses-refusal": () => {
    const fetch = scriptedFetch([
      {
        chunks: sse([
          { type: "response.created", response: { id: "r", status: "in_progress", output: [] } },
          {
            type: "response.output_item.added",
            output_index: 0,
            item: { type: "message", id: "i", role: "assistant", content: [] },
          },
          { type: "response.refusal.delta", output_index: 0, content_index: 0, item_id: "i", delta: "I won't." },
          {
            type: "response.completed",
            response: {
              id: "r",
              status: "completed",
              output: [
                { type: "message", id: "i", role: "assistant", content: [{ type: "refusal", refusal: "I won't." }] },
              ],
              usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
            },
          },
        ]),
      },
    ]);
    const model = openai("gpt-6", { api: "responses", apiKey: "key", fetch, baseUrl: "http://model.invalid/v1" });
    return record(new Agent({ model }), ["Do harm"]);
  },

  "retry-after-half-an-answer": () => {
    const model = compatible([
      { status: 503, headers: { "content-type": "application/json" }, chunks: ['{"error":{"message":"busy"}}'] },
      // biome-ignore lint/suspicious/noThenProperty: the word of the scripted fetch
      { chunks: chatText("half").slice(0, 1), then: "cut" },
      { chunks: chatText("whole") },
    ]);
    return record(new Agent({ model, retry }), ["Hello"]);
  },

  "error-at-the-end": () => {
    const refused = {
      status: 401,
      headers: { "content-type": "application/json" },
      chunks: ['{"error":{"message":"no such key","code":"invalid_api_key"}}'],
    };
    return record(new Agent({ model: compatible([refused]), retry }), ["Hello"]);
  },

  "abort-at-work": () => {
    const stuck = tool({
      description: "Never ends",
      input: { type: "object" },
      execute: (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    });
    const model = scriptedModel([[{ type: "text-delta", delta: "I wait" }, call("stuck", "1"), usage]]);
    const during = (event, run) => event.type === "tool-start" && run.abort();
    return record(new Agent({ model, tools: { stuck } }), ["Wait"], { during });
  },

  "approval-over-two-processes": async () => {
    const pay = tool({ description: "Pays", input: city, needsApproval: true, execute: () => "paid" });
    const answers = [[call("pay", "1", { city: "Oslo" }), call("pay", "2", { city: "Rome" }), usage], "One of two."];
    const agent = new Agent({ model: scriptedModel(answers), tools: { pay } });
    const first = await record(agent, ["Pay both"], { leaves: true });
    const session = agent.session(first.saved.toJSON());
    session.approve("1", true);
    session.approve("2", false, "too much");
    const second = await record(agent, [undefined], { session });
    return { events: [...first.events, ...second.events], saved: first.saved };
  },

  "structured-output-mended": () => {
    const model = scriptedModel([
      ['{"degrees":"warm"}', usage],
      ['{"degrees":12}', usage],
    ]);
    const output = { type: "object", properties: { degrees: { type: "number" } }, required: ["degrees"] };
    return record(new Agent({ model }), ["How warm?"], { options: { output } });
  },

  compaction: () => {
    const model = scriptedModel(["one ".repeat(120), "two ".repeat(120), "three"]);
    const agent = new Agent({ model, compaction: { thresholdTokens: 60, keepTokens: 20 } });
    return record(agent, ["first ".repeat(80), "second ".repeat(80), "third"]);
  },

  "sub-agent": () => {
    const inner = new Agent({
      model: scriptedModel([[call("weather", "w", { city: "Oslo" }), usage], "It rains."]),
      tools: { weather },
    });
    const model = scriptedModel([[call("forecaster", "f", { prompt: "Oslo?" }), usage], "Rain."]);
    return record(
      new Agent({ model, tools: { forecaster: subAgent({ description: "Knows weather", agent: inner }) } }),
      ["Oslo?"],
    );
  },

  "tools-of-every-kind": () => {
    const tools = {
      detailed: tool({
        description: "d",
        input: city,
        execute: (_, { progress }) => {
          progress({ done: 1 });
          return toolOutput({ content: [{ type: "text", text: "told" }], details: { shown: true } });
        },
      }),
      failing: tool({ description: "f", input: city, execute: () => Promise.reject(new Error("it broke")) }),
      client: tool({ description: "c", input: city }),
    };
    const calls = ["detailed", "failing", "client"].map((name) => call(name, name, { city: "Oslo" }));
    const wrong = [call("failing", "wrong", { city: ["Oslo"] }), call("absent", "absent")];
    const model = scriptedModel([[...calls, ...wrong, usage], "Done."]);
    const during = (event, run) => {
      if (event.type !== "run-suspended") return;
      run.toolResult("client", { city: "Oslo" });
      run.steer("in English");
    };
    return record(new Agent({ model, tools, maxConcurrentTools: 1 }), ["All"], { during });
  },

  "limit-of-steps": () => {
    const model = scriptedModel([[call("weather", "1", { city: "Oslo" }), usage], "never asked"]);
    return record(new Agent({ model, tools: { weather }, maxSteps: 1 }), ["Again and again"]);
  },

  "fallback-model": () => {
    const failing = scriptedModel([new CrabletError({ kind: "quota", message: "used up", retryable: false })]);
    return record(new Agent({ model: failing, fallbackModels: [scriptedModel(["from the other"])], retry }), ["Hello"]);
  },
};

/** Ids by the order in which they come; times and waits by what they are. */
function normaliser() {
  const known = new Map();
  const counts = {};
  return (text) =>
    text
      .replace(/\b(call|hook|msg|run)_[0-9a-f]{16}\b/g, (id, kind) => {
        if (!known.has(id)) {
          counts[kind] = (counts[kind] ?? 0) + 1;
          known.set(id, `${kind}_${counts[kind]}`);
        }
        return known.get(id);
      })
      .replace(/("seed":")[0-9a-f]{16}/g, "$10000000000000000")
      .replace(/("at":)\d{13}\b/g, "$10")
      .replace(/("delayMs":)\d+/g, "$10");
}

const print = (file, text) => console.log(JSON.stringify({ file, text }));

for (const [name, run] of Object.entries(RUNS)) {
  const { events, saved } = await run();
  const same = normaliser();
  print(`events/${name}.jsonl`, events.map((event) => `${same(JSON.stringify(event))}\n`).join(""));
  const { version, snapshot } = saved.toJSON();
  print(`sessions/${name}.jsonl`, same(`${JSON.stringify({ version })}\n${snapshot}`));
}
