// What is known of models, what answers cost, budgets, and models that stand in for others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, anthropic, azure, bedrock, groq, openai, tool } from "crablet";
import { catalog, ModelCatalog } from "crablet/models";
import { scriptedFetch } from "crablet/test";
import { collect, types } from "./support.mjs";

const chunk = (delta, rest = {}) => `data: ${JSON.stringify({ choices: [{ index: 0, delta, ...rest }] })}\n\n`;
const usage = (tokens) =>
  `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: tokens, completion_tokens: tokens } })}\n\n`;
const said = (text) => ({
  chunks: [chunk({ content: text }), chunk({}, { finish_reason: "stop" }), usage(1_000_000), "data: [DONE]\n\n"],
});
const called = (name) => ({
  chunks: [
    chunk({ tool_calls: [{ index: 0, id: "c1", function: { name, arguments: "{}" } }] }),
    chunk({}, { finish_reason: "tool_calls" }),
    usage(1_000_000),
    "data: [DONE]\n\n",
  ],
});
const busy = { status: 503, headers: { "content-type": "application/json" }, chunks: ['{"error":{"message":"busy"}}'] };

test("every model of the catalogue says what it costs and where that stands", () => {
  assert.ok(catalog.models.length > 50);
  for (const { provider, id, prices, sources } of catalog.models) {
    assert.ok(prices.input <= prices.output, `${provider} ${id}`);
    assert.match(sources[0].url, /^https:\/\//);
    assert.match(sources[0].date, /^2026-\d\d-\d\d$/);
  }
  assert.equal(catalog.find(anthropic("claude-haiku-4-5-20251001")).contextWindow, 200_000);
  assert.equal(catalog.find(bedrock("us.anthropic.claude-sonnet-4-6", { region: "us-east-1" })).prices.input, 3);
  assert.equal(catalog.find(openai("gpt-5.2-codex")), undefined);
});

test("a catalogue is extended without changing it", () => {
  const mine = catalog.with({ provider: "azure", id: "my-deployment", prices: { input: 1, output: 2 } });
  const model = azure("my-deployment", { resource: "name", apiKey: "key" });
  assert.equal(mine.find(model).prices.output, 2);
  assert.equal(catalog.find(model), undefined);
  assert.equal(new ModelCatalog().describe(model), model, "unknown models stay as they are");
});

test("steps and runs have their cost, by the prices of the catalogue", async () => {
  const fetch = scriptedFetch([called("look"), said("done")]);
  const model = catalog.describe(openai("gpt-4o-mini", { apiKey: "key", fetch }));
  const look = tool({ description: "Looks.", input: { type: "object" }, execute: () => "seen" });
  const result = await new Agent({ model, tools: { look } }).run("hi");
  assert.deepEqual(
    result.steps.map((step) => step.usage.cost),
    [0.75, 0.75],
  );
  assert.equal(result.usage.cost, 1.5);
});

test("a budget ends the run, and needs prices", async () => {
  const look = tool({ description: "Looks.", input: { type: "object" }, execute: () => "seen" });
  const options = { apiKey: "key", fetch: scriptedFetch([called("look"), said("done")]) };
  const priced = openai("any", { ...options, prices: { input: 1, output: 1 } });
  const events = await collect(new Agent({ model: priced, tools: { look }, maxCost: 2 }).stream("hi"));
  assert.deepEqual(types(events).slice(-2), ["limit-reached", "run-end"]);
  assert.equal(events.at(-2).limit, "cost");
  assert.equal(events.at(-1).stopReason, "limit");
  const unpriced = new Agent({ model: openai("any", options), maxCost: 2 });
  await assert.rejects(unpriced.run("hi"), { kind: "invalid-input", message: /prices/ });
});

test("a function says what its answers cost", async () => {
  const look = tool({ description: "Looks.", input: { type: "object" }, execute: () => "seen" });
  const calling = (usage) =>
    async function* () {
      yield { type: "tool-call", toolName: "look", input: {} };
      if (usage) yield { type: "usage", ...usage };
    };
  const costly = new Agent({ model: calling({ outputTokens: 3, cost: 0.4 }), tools: { look }, maxCost: 1 });
  const events = await collect(costly.stream("hi"));
  assert.equal(events.at(-2).limit, "cost");
  assert.equal(events.at(-1).usage.cost, 1.2);
  const silent = new Agent({ model: calling(), tools: { look }, maxCost: 1 });
  await assert.rejects(silent.run("hi"), { kind: "invalid-input", message: /limit of cost/ });
});

test("each model is called with its own key, at its own address", async () => {
  const fetch = scriptedFetch([busy, busy, said("whole")]);
  const asked = [];
  const key = (name) => async () => {
    asked.push(name);
    return `key-${name}`;
  };
  const agent = new Agent({
    model: openai("gpt-5.2", { apiKey: key("first"), fetch }),
    fallbackModels: [
      groq("openai/gpt-oss-20b", { apiKey: "key-second", fetch }),
      anthropic("claude-haiku-4-5", { apiKey: key("third"), fetch, baseUrl: "https://never.example" }),
    ],
    retry: { maxAttempts: 2, baseDelayMs: 1 },
  });
  const result = await agent.run("hi");
  assert.equal(result.text, "whole");
  assert.deepEqual(asked, ["first", "first"]);
  assert.deepEqual(
    fetch.requests.map(({ url, headers }) => [new URL(url).host, headers.get("authorization")]),
    [
      ["api.openai.com", "Bearer key-first"],
      ["api.openai.com", "Bearer key-first"],
      ["api.groq.com", "Bearer key-second"],
    ],
  );
  assert.equal(result.messages.at(-1).model.provider, "groq");
});

test("the models of an agent share one fetch", async () => {
  const fetch = scriptedFetch([]);
  const agent = new Agent({ model: openai("a", { fetch }), fallbackModels: [openai("b", {})] });
  await assert.rejects(agent.run("hi"), { kind: "invalid-input" });

  const chosen = openai("b", { apiKey: "key-of-b" });
  const changing = new Agent({
    model: openai("a", { apiKey: "key-of-a", fetch }),
    prepareStep: () => ({ model: chosen }),
  });
  await assert.rejects(changing.run("hi"), ({ message }) => /the same fetch/.test(message));
  assert.equal(fetch.requests.length, 0, "the key of one is not given to the fetch of another");
});

test("an object is asked for in the provider's way and found in its answer", async () => {
  const object = '{"city":"Oslo"}';
  const shape = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
  const held = scriptedFetch([said(object)]);
  const first = await new Agent({ model: openai("gpt-5.2", { apiKey: "k", fetch: held }) }).run("hi", {
    output: shape,
  });
  assert.deepEqual(first.output, { city: "Oslo" });
  assert.equal(JSON.parse(held.requests[0].body).response_format.json_schema.strict, true);
  const call = { index: 0, id: "c1", function: { name: "final_answer", arguments: object } };
  const answer = [chunk({ tool_calls: [call] }), chunk({}, { finish_reason: "tool_calls" }), "data: [DONE]\n\n"];
  const tooled = scriptedFetch([{ chunks: answer }]);
  const run = new Agent({ model: groq("any", { apiKey: "k", fetch: tooled }) }).stream("hi", { output: shape });
  assert.deepEqual((await collect(run.partialOutputStream)).at(-1), { city: "Oslo" });
  const second = await run.result;
  assert.deepEqual(second.output, { city: "Oslo" });
  assert.equal(second.text, object);
});
