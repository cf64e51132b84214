// Models of the AI SDK's providers in a crablet agent: the real provider against a server of this machine, and the forms of each
// version of the specification.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Agent, CrabletError, tool } from "crablet";
import { fromLanguageModel } from "crablet/ai-sdk";
import { serveFetch } from "../lib/fetch-server.mjs";

const anything = { type: "object" };

/** A server of Chat Completions that gives these answers, and keeps what it was asked. */
async function withServer(answers, use) {
  const requests = [];
  const site = await serveFetch(async (request) => {
    requests.push({ ...(await request.json()), authorization: request.headers.get("authorization") });
    const answer = answers[requests.length - 1];
    if (typeof answer === "function") return answer(request);
    const chunks = answer.map((chunk) => `data: ${typeof chunk === "string" ? chunk : JSON.stringify(chunk)}\n\n`);
    return new Response(chunks.join(""), { headers: { "content-type": "text/event-stream" } });
  });
  try {
    const provider = createOpenAICompatible({
      name: "local",
      baseURL: `${site.url}/v1`,
      apiKey: "secret-key",
      includeUsage: true,
    });
    return await use(provider, requests);
  } finally {
    await site.stop();
  }
}

const delta = (value, finish_reason = null) => ({ choices: [{ index: 0, delta: value, finish_reason }] });
const usage = {
  choices: [],
  usage: { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15, prompt_tokens_details: { cached_tokens: 5 } },
};

test("the real provider streams text, reasoning, calls and usage, and is sent the whole conversation", async () => {
  const called = delta({
    tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } }],
  });
  const answers = [
    [
      delta({ role: "assistant", reasoning_content: "hm" }),
      delta({ content: "look" }),
      called,
      delta({}, "tool_calls"),
      usage,
      "[DONE]",
    ],
    [delta({ content: "It " }), delta({ content: "rains." }), delta({}, "stop"), usage, "[DONE]"],
  ];
  await withServer(answers, async (provider, requests) => {
    const weather = tool({ description: "The weather", input: anything, execute: ({ city }) => `${city}: rain` });
    const model = fromLanguageModel(provider("m1"), { temperature: 0.5 });
    assert.equal(model.name, "m1");
    const agent = new Agent({ model, instructions: "Be brief.", tools: { weather } });
    const session = agent.session();
    const deltas = [];
    for await (const event of session.send([
      { type: "text", text: "Umbrella?" },
      { type: "image", mediaType: "image/png", data: "iVBORw0KGgo=" },
    ])) {
      if (event.type === "text-delta") deltas.push(event.delta);
      if (event.type === "run-end")
        assert.deepEqual(event.usage, { inputTokens: 24, outputTokens: 6, cacheReadTokens: 10, reasoningTokens: 0 });
    }
    assert.deepEqual(deltas, ["look", "It ", "rains."]);
    assert.deepEqual(session.getState().messages[1].content[0], { type: "reasoning", text: "hm" });
    const [first, second] = requests;
    assert.equal(first.model, "m1");
    assert.equal(first.temperature, 0.5);
    assert.equal(first.authorization, "Bearer secret-key");
    assert.deepEqual(first.messages[0], { role: "system", content: "Be brief." });
    assert.match(JSON.stringify(first.messages[1]), /data:image\/png;base64,iVBORw0KGgo=/);
    assert.equal(first.tools[0].function.name, "weather");
    assert.deepEqual(
      second.messages.slice(2).map(({ role, tool_call_id: id, content }) => [role, id, content]),
      [
        ["assistant", undefined, "look"],
        ["tool", "c1", "Oslo: rain"],
      ],
    );
  });
});

test("a refusal of the server becomes an error of the right kind, tried again where that helps", async () => {
  const busy = () =>
    Response.json({ error: { message: "slow down" } }, { status: 429, headers: { "retry-after": "0" } });
  const later = () =>
    Response.json({ error: { message: "tomorrow" } }, { status: 429, headers: { "retry-after": "3600" } });
  const denied = () => Response.json({ error: { message: "no such key" } }, { status: 401 });
  await withServer(
    [busy, [delta({ content: "ok" }), delta({}, "stop"), "[DONE]"], denied, later],
    async (provider, requests) => {
      const agent = new Agent({ model: fromLanguageModel(provider("m")), retry: { baseDelayMs: 1 } });
      assert.equal((await agent.run("a")).text, "ok");
      assert.equal(requests.length, 2);
      await assert.rejects(agent.run("b"), (error) => {
        assert.ok(CrabletError.is(error));
        assert.equal(error.kind, "auth");
        assert.doesNotMatch(JSON.stringify(error) + error.message, /secret-key/);
        return true;
      });
      assert.equal(requests.length, 3);
      // A wait that is longer than any run allows is not waited for.
      await assert.rejects(agent.run("c"), (error) => error.kind === "rate-limit" && error.retryAfterMs === 3_600_000);
      assert.equal(requests.length, 4);
    },
  );
});

test("an aborted run closes the provider's request, and an output is asked for as JSON", async () => {
  let closed;
  const isClosed = new Promise((resolve) => {
    closed = resolve;
  });
  const endless = (request) => {
    request.signal.addEventListener("abort", closed);
    return new Response(
      new ReadableStream({
        start: (controller) =>
          controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(delta({ content: "on" }))}\n\n`)),
      }),
      { headers: { "content-type": "text/event-stream" } },
    );
  };
  const object = [delta({ content: '{"n":4}' }), delta({}, "stop"), "[DONE]"];
  await withServer([endless, object], async (provider, requests) => {
    const agent = new Agent({ model: fromLanguageModel(provider("m")) });
    for await (const event of agent.stream("a")) if (event.type === "text-delta") break;
    await isClosed;
    const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
    assert.deepEqual((await agent.run("b", { output: schema })).output, { n: 4 });
    assert.equal(requests[1].response_format.type, "json_object");
  });
});

/** A model of one version that gives these answers in its own words. */
function modelOf(specificationVersion, answers) {
  const calls = [];
  return {
    specificationVersion,
    provider: "p",
    modelId: "m",
    calls,
    async doStream(options) {
      calls.push(options);
      const parts = answers[calls.length - 1];
      return { stream: ReadableStream.from ? ReadableStream.from(parts) : new Response(parts).body };
    },
  };
}

const spoken = {
  v2: { usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3, cachedInputTokens: 1 }, reason: (reason) => reason },
  v3: {
    usage: { inputTokens: { total: 1, cacheRead: 1 }, outputTokens: { total: 2 } },
    reason: (unified) => ({ unified, raw: undefined }),
  },
};
spoken.v4 = spoken.v3;

for (const version of ["v2", "v3", "v4"]) {
  test(`version ${version}: files, failed results, what the provider keeps, how it ends`, async () => {
    const { usage: counts, reason } = spoken[version];
    const finish = (word) => ({ type: "finish", usage: counts, finishReason: reason(word) });
    const signature = { p: { signature: "s1" } };
    const model = modelOf(version, [
      [
        { type: "stream-start", warnings: [] },
        { type: "reasoning-start", id: "r" },
        { type: "reasoning-delta", id: "r", delta: "think" },
        { type: "reasoning-end", id: "r", providerMetadata: signature },
        { type: "tool-call", toolCallId: "x", toolName: "search", input: "{}", providerExecuted: true },
        { type: "tool-call", toolCallId: "c1", toolName: "draw", input: "{}", providerMetadata: signature },
        { type: "tool-call", toolCallId: "c2", toolName: "fail", input: "{}" },
        finish("tool-calls"),
      ],
      [{ type: "text-delta", id: "t", delta: "cut" }, finish("length")],
      [{ type: "text-delta", id: "t", delta: "no end" }],
    ]);
    const { toolOutput } = await import("crablet");
    const image = { type: "image", mediaType: "image/png", data: "iVBORw0KGgo=" };
    const tools = {
      draw: tool({
        description: "d",
        input: anything,
        execute: () => toolOutput({ content: [{ type: "text", text: "a picture" }, image] }),
      }),
      fail: tool({
        description: "f",
        input: anything,
        execute: () => {
          throw new Error("broken");
        },
      }),
    };
    const session = new Agent({ model: fromLanguageModel(model), tools, retry: false }).session();
    const { usage: total } = await session.send("go").result;
    assert.deepEqual(total, { inputTokens: 2, outputTokens: 4, cacheReadTokens: 2 });
    assert.equal(session.getState().messages.at(-1).stopReason, "length");
    const [, assistant, results] = model.calls[1].prompt;
    assert.deepEqual(assistant.content[0], { type: "reasoning", text: "think", providerOptions: signature });
    assert.deepEqual(assistant.content[1].providerOptions, signature);
    assert.deepEqual(assistant.content.map(({ toolName }) => toolName).filter(Boolean), ["draw", "fail"]);
    const file = results.content[0].output.value[1];
    const expected = {
      v2: { type: "media", data: image.data, mediaType: "image/png" },
      v3: { type: "file-data", data: image.data, mediaType: "image/png" },
      v4: { type: "file", data: { type: "data", data: image.data }, mediaType: "image/png" },
    };
    assert.deepEqual(file, expected[version]);
    assert.equal(results.content[1].output.type, "error-text");
    await assert.rejects(session.send("more").result, (error) => error.kind === "stream-truncated");
  });
}

test("what is no language model is refused", () => {
  for (const model of ["openai/gpt-5", {}, undefined, { ...modelOf("v9", []) }])
    assert.throws(
      () => fromLanguageModel(model),
      (error) => error.kind === "invalid-input",
    );
});
