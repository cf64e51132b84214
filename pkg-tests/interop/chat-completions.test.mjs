// Agents behind the Chat Completions wire, asked by the official client of OpenAI.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, CrabletError, tool } from "crablet";
import { chatCompletionsHandler } from "crablet/chat-completions";
import { scriptedModel } from "crablet/test";
import OpenAI from "openai";
import { serveFetch } from "../lib/fetch-server.mjs";

const anything = { type: "object" };
const call = (callId, toolName, input = {}) => ({ type: "tool-call", callId, toolName, input });
const usage = { type: "usage", inputTokens: 10, outputTokens: 5 };

async function withClient(options, use) {
  const handler = chatCompletionsHandler(options);
  const site = await serveFetch(handler);
  try {
    const client = new OpenAI({ apiKey: "any", baseURL: `${site.url}/v1`, maxRetries: 0 });
    return await use(client, site.url);
  } finally {
    await site.stop();
  }
}

const user = (content) => ({ role: "user", content });
const textOf = (chunks) => chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");

async function all(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

test("an answer whole and streamed, after what the agent's own tools did unseen", async () => {
  const script = [
    ["looking", call("c1", "weather"), usage],
    ["It rains.", usage],
  ];
  const model = scriptedModel([...script, ...script]);
  const weather = tool({ description: "w", input: anything, execute: () => "rain" });
  const agent = new Agent({ model, instructions: "Own rules.", tools: { weather } });
  await withClient({ models: { helper: agent } }, async (client) => {
    const messages = [
      { role: "system", content: "Caller's rules." },
      user("a"),
      { role: "assistant", content: "b" },
      user("c"),
    ];
    const whole = await client.chat.completions.create({ model: "helper", messages });
    assert.equal(whole.choices[0].message.content, "looking\n\nIt rains.");
    assert.equal(whole.choices[0].message.tool_calls, undefined);
    assert.equal(whole.choices[0].finish_reason, "stop");
    assert.deepEqual(
      [whole.usage.prompt_tokens, whole.usage.completion_tokens, whole.usage.total_tokens],
      [20, 10, 30],
    );
    assert.equal(model.requests[0].instructions, "Own rules.\n\nCaller's rules.");
    assert.deepEqual(
      model.requests[0].messages.map(({ role, content }) => [role, content[0].text]),
      [
        ["user", "a"],
        ["assistant", "b"],
        ["user", "c"],
      ],
    );
    const stream = await client.chat.completions.create({
      model: "helper",
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await all(stream);
    assert.equal(textOf(chunks), "looking\n\nIt rains.");
    assert.equal(chunks[0].choices[0].delta.role, "assistant");
    assert.equal(chunks.at(-2).choices[0].finish_reason, "stop");
    assert.equal(chunks.at(-1).usage.total_tokens, 30);
    assert.deepEqual(
      (await client.models.list()).data.map(({ id }) => id),
      ["helper"],
    );
  });
});

test("the caller's tools are the caller's, the agent's its own, and none of its own runs twice", async () => {
  for (const stream of [false, true]) {
    const ran = [];
    const model = scriptedModel([
      ["one moment", call("c1", "own"), call("c2", "locate", { precise: true }), call("c3", "locate", {})],
      ({ messages }) =>
        messages
          .at(-1)
          .content.map(({ content: [{ text }] }) => text)
          .join(),
    ]);
    const own = tool({ description: "o", input: anything, execute: () => ran.push("own") && "did it" });
    await withClient({ models: { helper: new Agent({ model, tools: { own } }) } }, async (client) => {
      const locate = { type: "function", function: { name: "locate", description: "Where", parameters: anything } };
      const messages = [user("Where am I?")];
      const ask = async () => {
        const body = { model: "helper", messages, tools: [locate] };
        if (!stream) return (await client.chat.completions.create(body)).choices[0];
        const runner = client.chat.completions.stream(body);
        return (await runner.finalChatCompletion()).choices[0];
      };
      const asked = await ask();
      assert.equal(asked.finish_reason, "tool_calls");
      assert.equal(asked.message.content, "one moment");
      assert.deepEqual(
        asked.message.tool_calls.map(({ function: { name, arguments: given } }) => [name, JSON.parse(given)]),
        [
          ["locate", { precise: true }],
          ["locate", {}],
        ],
      );
      assert.deepEqual(model.requests[0].tools.map(({ name }) => name).sort(), ["locate", "own"]);
      messages.push(asked.message);
      for (const [index, { id }] of asked.message.tool_calls.entries())
        messages.push({ role: "tool", tool_call_id: id, content: `Oslo ${index}` });
      const answered = await ask();
      assert.equal(answered.message.content, "did it,Oslo 0,Oslo 1");
      assert.equal(answered.finish_reason, "stop");
      assert.deepEqual(ran, ["own"]);
    });
  }
});

test("results that belong to no run that waits go on from what the caller sent", async () => {
  const model = scriptedModel([
    ({ messages }) => JSON.stringify(messages.map(({ role, content }) => [role, content.at(-1)])),
  ]);
  await withClient({ models: { helper: new Agent({ model }) } }, async (client) => {
    const tools = [{ type: "function", function: { name: "locate", parameters: anything } }];
    const called = { id: "call_1", type: "function", function: { name: "locate", arguments: '{"a":1}' } };
    const messages = [
      user("Where?"),
      { role: "assistant", content: null, tool_calls: [called] },
      { role: "tool", tool_call_id: "call_1", content: "Oslo" },
    ];
    const { choices } = await client.chat.completions.create({ model: "helper", messages, tools });
    const [, assistant, result] = JSON.parse(choices[0].message.content);
    assert.deepEqual(assistant[1].input, { a: 1 });
    assert.equal(result[1].content[0].text, "Oslo");
  });
});

test("an answer is taken back as a client has it, with null for what it did not have", async () => {
  const heard = ({ messages }) => [
    JSON.stringify(messages.map(({ content }) => content.map((part) => part.text ?? part.input))),
  ];
  await withClient({ models: { "a/b": new Agent({ model: heard }) } }, async (client) => {
    const nothing = { refusal: null, annotations: [], audio: null, function_call: null };
    const given = { name: "f", description: null, parameters: null, strict: null };
    const { choices } = await client.chat.completions.create({
      model: "a/b",
      messages: [
        user("one"),
        { role: "assistant", content: "two", ...nothing, tool_calls: null },
        user("three"),
        { role: "assistant", ...nothing, tool_calls: [{ id: "c", function: { name: "f", arguments: { a: 1 } } }] },
        { role: "tool", tool_call_id: "c", content: "four" },
      ],
      tools: [{ type: "function", function: given }],
      tool_choice: null,
    });
    assert.equal(choices[0].message.content, '[["one"],["two"],["three"],[{"a":1}],[null]]');
    assert.equal((await client.models.retrieve("a/b")).id, "a/b");
    await assert.rejects(client.models.retrieve("b"), { status: 404 });
  });
});

test("a caller's tool may not stand in for one of the agent's, and what an agent cannot do is refused", async () => {
  const bash = tool({ description: "b", input: anything, execute: () => assert.fail("it was not asked for") });
  const model = scriptedModel([]);
  await withClient({ models: { helper: new Agent({ model, tools: { bash } }) } }, async (client) => {
    const create = (body) => client.chat.completions.create({ model: "helper", messages: [user("x")], ...body });
    const named = (name) => [{ type: "function", function: { name, parameters: anything } }];
    const refused = [
      [{ tools: named("bash") }, 400, /bash is one of the agent's own/],
      [{ tools: named("a"), tool_choice: "required" }, 400, /tool_choice/],
      [{ n: 2 }, 400, /one answer/],
      [{ messages: [] }, 400, /no messages/],
      [{ messages: [{ role: "assistant", content: "x" }] }, 400, /not one to answer/],
      [
        { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "file:///etc/passwd" } }] }] },
        400,
        /http/,
      ],
      [{ response_format: { type: "json_object" } }, 400, /json_schema/],
      [{ temperature: "0.5" }, 400, /temperature is a number/],
      [{ max_tokens: 0.5 }, 400, /max_completion_tokens is a whole number/],
      [{ stop: 5 }, 400, /stop is a text/],
      [{ tools: [{ type: "function", function: { name: "a", parameters: "{}" } }] }, 400, /no JSON Schema/],
      [{ messages: [{ role: "assistant", tool_calls: {} }, user("x")] }, 400, /not a list/],
      [{ messages: [{ role: "assistant", tool_calls: [null] }, user("x")] }, 400, /lacks its id/],
      [{ messages: [{ role: "user", content: [{ type: "text", text: null }] }] }, 400, /cannot be read/],
      [{ model: "toString" }, 404, /no model/],
    ];
    for (const [body, status, message] of refused) {
      await assert.rejects(create(body), (error) => {
        assert.equal(error.status, status, JSON.stringify(body));
        assert.match(error.message, message);
        return true;
      });
    }
    assert.equal(model.requests.length, 0);
  });
});

test("a call that needs an approval is denied, unless the agent has somebody who approves", async () => {
  const ran = [];
  const script = [[call("c1", "risky")], ({ messages }) => `failed: ${messages.at(-1).content[0].isError}`];
  const risky = tool({ description: "r", input: anything, needsApproval: true, execute: () => ran.push(1) });
  const models = {
    strict: new Agent({ model: scriptedModel(script), tools: { risky } }),
    open: new Agent({ model: scriptedModel(script), tools: { risky }, approve: async () => true }),
  };
  await withClient({ models }, async (client) => {
    const ask = async (model) =>
      (await client.chat.completions.create({ model, messages: [user("x")] })).choices[0].message.content;
    assert.equal(await ask("strict"), "failed: true");
    assert.deepEqual(ran, []);
    assert.equal(await ask("open"), "failed: false");
    assert.deepEqual(ran, [1]);
  });
});

test("a failure before text is a status, after text an error in the stream; nothing is said twice", async () => {
  const overloaded = () => new CrabletError({ kind: "overloaded", message: "org-secret", retryable: true });
  const breaking = () => {
    let attempts = 0;
    return async function* model() {
      attempts += 1;
      yield attempts === 1 ? "half" : "whole";
      if (attempts === 1) throw overloaded();
    };
  };
  const failing = async function* () {
    yield* [];
    throw overloaded();
  };
  const retry = { baseDelayMs: 1 };
  const models = () => ({
    breaking: new Agent({ model: breaking(), retry }),
    failing: new Agent({ model: failing, retry: false }),
  });
  const ask = (client, model, stream) => client.chat.completions.create({ model, messages: [user("x")], stream });
  await withClient({ models: models() }, async (client) => {
    for (const stream of [true, false]) {
      await assert.rejects(ask(client, "failing", stream), (error) => {
        assert.equal(error.status, 503);
        assert.doesNotMatch(error.message, /org-secret/);
        return true;
      });
    }
    const chunks = [];
    await assert.rejects(
      (async () => {
        for await (const chunk of await ask(client, "breaking", true)) chunks.push(chunk);
      })(),
      /cannot be taken back|failed/,
    );
    assert.equal(textOf(chunks), "half");
  });
  await withClient({ models: models() }, async (client) => {
    assert.equal((await ask(client, "breaking", false)).choices[0].message.content, "whole");
  });
  await withClient({ models: models(), bufferSteps: true }, async (client) => {
    assert.equal(textOf(await all(await ask(client, "breaking", true))), "whole");
  });
});

test("a caller that goes away aborts the run; an output has the caller's schema; a request may be sent away", async () => {
  let aborted;
  const isAborted = new Promise((resolve) => {
    aborted = resolve;
  });
  const endless = async function* (_request, { signal }) {
    signal.addEventListener("abort", aborted);
    for (;;) {
      yield "on and ";
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const models = {
    endless: new Agent({ model: endless }),
    object: new Agent({ model: scriptedModel(['{"n":4}']) }),
    closed: () => Response.json({ error: { message: "not yours" } }, { status: 403 }),
  };
  await withClient({ models }, async (client) => {
    const create = (model, rest = {}) => client.chat.completions.create({ model, messages: [user("x")], ...rest });
    for await (const chunk of await create("endless", { stream: true })) if (chunk.choices[0].delta.content) break;
    await isAborted;
    const schema = {
      type: "object",
      properties: { n: { type: "number" } },
      required: ["n"],
      additionalProperties: false,
    };
    const { choices } = await create("object", {
      response_format: { type: "json_schema", json_schema: { name: "n", schema } },
    });
    assert.deepEqual(JSON.parse(choices[0].message.content), { n: 4 });
    await assert.rejects(create("closed"), (error) => error.status === 403);
  });
});
