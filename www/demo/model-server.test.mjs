import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startModelServer } from "./model-server.mjs";

const readTool = {
  type: "function",
  function: {
    name: "read_text_file",
    description: "Read a file",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  },
};
const lines = [];
let server;
let lineArrived = () => {};

before(async () => {
  server = await startModelServer({
    delay: 0,
    log: (line) => {
      lines.push(line);
      lineArrived();
    },
  });
});
after(() => server.close());

const post = (body, init = {}) =>
  fetch(`${server.url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    ...init,
  });

const streamed = async (model, content, extra = {}) => {
  const response = await post({ model, stream: true, messages: [{ role: "user", content }], ...extra });
  const text = await response.text();
  return text
    .split("\n\n")
    .filter(Boolean)
    .map((event) => event.replace(/^data: /, ""));
};

test("streams a tool call in pieces, then the end marker", async () => {
  const events = await streamed("scripted-demo", "read some/very/long/path/of/a/file.txt", {
    tools: [readTool],
    stream_options: { include_usage: true },
  });
  assert.equal(events.pop(), "[DONE]");
  const chunks = events.map((event) => JSON.parse(event));
  const pieces = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
  assert.equal(pieces[0].function.name, "read_text_file");
  assert.ok(pieces.length > 3);
  assert.deepEqual(JSON.parse(pieces.map((piece) => piece.function.arguments).join("")), {
    path: "some/very/long/path/of/a/file.txt",
  });
  assert.equal(chunks.at(-2).choices[0].finish_reason, "tool_calls");
  assert.ok(chunks.at(-1).usage.total_tokens > 0);
  assert.ok(chunks.every((chunk) => chunk.model === "scripted-demo"));
});

test("gives one JSON answer when streaming is not asked for", async () => {
  const answer = await (
    await post({ model: "scripted-demo", messages: [{ role: "user", content: "count to 3" }] })
  ).json();
  assert.equal(answer.choices[0].message.content, "1, 2, 3");
});

test("tells when the client leaves in the middle", async () => {
  const controller = new AbortController();
  const response = await post(
    { model: "slow", stream: true, messages: [{ role: "user", content: "count to 500" }] },
    { signal: controller.signal },
  );
  await response.body.getReader().read();
  controller.abort();
  while (!lines.some((line) => line.includes("client closed the stream")))
    await new Promise((resolve) => (lineArrived = resolve));
});

test("lists its models, to pages of any origin", async () => {
  const response = await fetch(`${server.url}/models`);
  assert.equal(response.headers.get("access-control-allow-origin"), "*");
  assert.equal((await response.json()).data[0].id, "scripted-demo");
});

test("refuses what is not a request", async () => {
  const response = await fetch(`${server.url}/chat/completions`, { method: "POST", body: "[1" });
  assert.equal(response.status, 400);
  assert.equal((await post({ model: "gpt-x" })).status, 404);
});

test("the bad modes fail as they say", async () => {
  assert.equal((await post({ model: "bad-key", stream: true, messages: [] })).status, 401);
  assert.equal((await post({ model: "overloaded", stream: true, messages: [] })).status, 503);
  const error200 = await post({ model: "error-200", stream: true, messages: [] });
  assert.equal(error200.status, 200);
  assert.ok((await error200.json()).error.message);
  const inStream = await streamed("error-in-stream", "hello");
  assert.ok(JSON.parse(inStream.at(-1)).error);
  assert.ok(!(await streamed("cut-clean", "hello")).includes("[DONE]"));
  await assert.rejects(streamed("cut", "hello"));
  const malformed = (await streamed("malformed-arguments", "hello", { tools: [readTool] }))
    .slice(0, -1)
    .map((event) => JSON.parse(event));
  const text = malformed
    .flatMap((chunk) => chunk.choices[0].delta.tool_calls ?? [])
    .map((piece) => piece.function.arguments)
    .join("");
  assert.throws(() => JSON.parse(text));
});
