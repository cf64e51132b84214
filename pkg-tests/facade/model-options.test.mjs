// What the settings of a model say in the body that a real server gets.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { json } from "node:stream/consumers";
import { Agent, anthropic, gemini, openai, openaiCompatible, tool } from "crablet";

const chat = [{ choices: [{ index: 0, delta: { content: "fine" }, finish_reason: "stop" }] }];
const message = { type: "message", id: "m", role: "assistant", content: [{ type: "output_text", text: "fine" }] };
const responses = [{ type: "response.completed", response: { id: "r", status: "completed", output: [message] } }];
const google = [{ candidates: [{ index: 0, content: { parts: [{ text: "fine" }] }, finishReason: "STOP" }] }];
const claude = [
  { type: "message_start", message: { id: "m", type: "message", role: "assistant", model: "m", content: [] } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "fine" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
  { type: "message_stop" },
];
const answers = [
  ["/messages", claude],
  ["/chat/completions", chat],
  ["/responses", responses],
  [":streamGenerateContent", google],
];

let server;
let origin;
let body;
before(async () => {
  server = createServer(async (request, response) => {
    body = await json(request);
    const [, events] = answers.find(([path]) => request.url.includes(path));
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${server.address().port}`;
});
after(() => {
  server.close();
  server.closeAllConnections();
});

const at = (make, id, options = {}) => make(id, { baseUrl: `${origin}/v1`, apiKey: "key-1", ...options });
const tools = {
  find: tool({
    description: "Finds things.",
    input: { type: "object", properties: { q: { type: "string" } } },
    execute: () => "found",
  }),
};

/** The body of a request with these settings. */
async function sent(model, modelOptions, input = "hi", more = {}) {
  body = undefined;
  const agent = new Agent({ model, modelOptions, tools, retry: false, ...more });
  assert.equal((await agent.run(input)).text, "fine");
  return body;
}

test("Anthropic is told in its words", async () => {
  const told = await sent(
    at(anthropic, "claude-opus-4-8"),
    {
      maxTokens: 500,
      temperature: 1,
      topP: 0.9,
      stop: ["END"],
      reasoning: "xhigh",
      parallelToolCalls: false,
      user: "user-1",
      serviceTier: "standard_only",
      cache: "long",
      providerTools: [{ type: "web_search_20250305", name: "web_search" }],
      extraBody: { top_k: 4, output_config: { task_budget: 1 } },
    },
    "hi",
    { instructions: "Be brief." },
  );
  const marker = { type: "ephemeral", ttl: "1h" };
  assert.equal(told.max_tokens, 500);
  assert.deepEqual([told.temperature, told.top_p, told.stop_sequences], [1, 0.9, ["END"]]);
  assert.deepEqual(told.thinking, { type: "adaptive", display: "summarized" });
  assert.deepEqual(told.output_config, { effort: "xhigh", task_budget: 1 });
  assert.deepEqual(told.tool_choice, { type: "auto", disable_parallel_tool_use: true });
  assert.deepEqual([told.metadata, told.service_tier], [{ user_id: "user-1" }, "standard_only"]);
  assert.deepEqual([told.cache_control, told.system[0].cache_control], [marker, marker]);
  assert.deepEqual(
    told.tools.map(({ name, type }) => [name, type]),
    [
      ["find", undefined],
      ["web_search", "web_search_20250305"],
    ],
  );
  assert.equal(told.top_k, 4);
});

test("OpenAI is told in its words, over both protocols", async () => {
  const modelOptions = {
    toolChoice: { tool: "find" },
    metadata: { team: "blue" },
    store: true,
    cache: "long",
    cacheKey: "team-1",
    user: "user-1",
    reasoning: 2048,
  };
  const told = await sent(at(openai, "gpt-5.2", { api: "responses" }), modelOptions);
  assert.deepEqual(told.tool_choice, { type: "function", name: "find" });
  assert.deepEqual(
    [told.metadata, told.store, told.prompt_cache_key, told.prompt_cache_retention, told.safety_identifier],
    [{ team: "blue" }, true, "team-1", "24h", "user-1"],
  );
  assert.deepEqual(told.reasoning, { effort: "low", summary: "auto" });
  const chatted = await sent(at(openai, "gpt-5.2"), { ...modelOptions, seed: 7, toolChoice: "none" });
  assert.deepEqual([chatted.tool_choice, chatted.seed, chatted.reasoning_effort], ["none", 7, "low"]);
  assert.equal((await sent(at(openai, "gpt-5.2"), {})).store, false);
});

test("Gemini is told of content that was cached beforehand", async () => {
  const told = await sent(at(gemini, "gemini-2.5-flash"), { cachedContent: "cachedContents/a", store: false });
  assert.deepEqual([told.cachedContent, told.store, told.tools], ["cachedContents/a", false, undefined]);
});

test("pictures are sent by value and by address, and a model that reads only text is told of them", async () => {
  const input = [
    { type: "text", text: "Look." },
    { type: "image", mediaType: "image/png", data: new Uint8Array([104, 105]) },
    { type: "image", mediaType: "image/png", url: "https://example.com/a.png" },
  ];
  const seen = await sent(at(openaiCompatible, "m"), {}, input);
  assert.deepEqual(
    seen.messages.at(-1).content.map((part) => part.image_url?.url ?? part.text),
    ["Look.", "data:image/png;base64,aGk=", "https://example.com/a.png"],
  );
  const read = await sent(at(openaiCompatible, "m", { accepts: [] }), {}, input);
  assert.deepEqual(
    read.messages.at(-1).content.map(({ type }) => type),
    ["text", "text", "text"],
  );
  assert.match(JSON.stringify(read), /image\/png left out/);
});

for (const [modelOptions, told] of [
  [{ temperature: "hot" }, /temperature must be a number, and is "hot"/],
  [{ maxTokens: 1.5 }, /maxTokens must be a whole number/],
  [{ toolChoice: "any" }, /toolChoice must be/],
  [{ toolChoice: { tool: "gone" } }, /"gone"/],
  [{ stop: "END" }, /stop must be a list/],
  [{ reasoning: "a lot" }, /reasoning must be/],
  [{ cache: "1h" }, /cache must be "short" or "long"/],
  [{ providerTools: { type: "web_search" } }, /providerTools must be a list/],
  [{ metadata: { team: 1 } }, /team must be a text/],
  [{ cachedContent: "cachedContents/a" }, /only Gemini and Vertex/],
]) {
  test(`a setting that cannot be told is an error: ${JSON.stringify(modelOptions)}`, async () => {
    body = undefined;
    const agent = new Agent({ model: at(anthropic, "claude-sonnet-4-5"), modelOptions, tools, retry: false });
    await assert.rejects(agent.run("hi"), (error) => error.kind === "invalid-input" && told.test(error.message));
    assert.equal(body, undefined, "nothing is sent");
  });
}
