// The snippets of docs/interop.md, run as they stand there but for the model and the addresses.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { scriptedModel } from "crablet/test";
import { serveFetch } from "../lib/fetch-server.mjs";
import { readSnippets } from "../lib/snippets.mjs";

const snippets = await readSnippets(join(import.meta.dirname, "interop.md"));
const MODEL = `anthropic("claude-sonnet-5", { apiKey: () => "…" })`;

/** The exports of a snippet, after these replacements. */
async function snippet(entry, replacements, footer = "") {
  let code = snippets.get(entry);
  for (const [written, tried] of replacements) {
    assert.ok(code.includes(written), `the block about crablet/${entry} has ${written}`);
    code = code.replace(written, tried);
  }
  const file = join(import.meta.dirname, `snippet-${entry}.mjs`);
  await writeFile(file, `${code}\n${footer}`);
  return import(file);
}

const withModel = (...answers) => {
  globalThis.scripted = scriptedModel(answers);
  return [MODEL, "globalThis.scripted"];
};

const json = (body, headers = {}) =>
  new Request("http://localhost/v1/chat/completions", { method: "POST", body: JSON.stringify(body), headers });

test("the handler for useChat asks before it deletes", async () => {
  const remove = { type: "tool-call", callId: "c1", toolName: "remove", input: { path: "a" } };
  const { POST } = await snippet("ui", [withModel([remove])]);
  const message = { id: "1", role: "user", parts: [{ type: "text", text: "Delete a" }] };
  const response = await POST(json({ id: "chat", messages: [message] }, { "x-user": "ida" }));
  assert.match(await response.text(), /"type":"tool-approval-request","approvalId":"c1"/);
});

test("the handler of Chat Completions answers whoever has the key", async () => {
  const { default: worker } = await snippet("chat-completions", [
    withModel("hello"),
    ["request: Request", "request"],
    ["Bearer …", "Bearer k"],
  ]);
  const body = { model: "helper", messages: [{ role: "user", content: "hi" }] };
  assert.equal((await worker.fetch(json(body))).status, 401);
  const { choices } = await (await worker.fetch(json(body, { authorization: "Bearer k" }))).json();
  assert.equal(choices[0].message.content, "hello");
});

test("the handler of AG-UI answers", async () => {
  const { POST } = await snippet("ag-ui", [withModel("hello")]);
  const messages = [{ id: "1", role: "user", content: "hi" }];
  const response = await POST(json({ threadId: "t", runId: "r", messages, tools: [], context: [] }));
  assert.match(await response.text(), /"type":"TEXT_MESSAGE_CONTENT","messageId":"[^"]+","delta":"hello"/);
});

const completion = () =>
  new Response(
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "from a server" }, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`,
    { headers: { "content-type": "text/event-stream" } },
  );

test("a model of the AI SDK answers, and a server where the browser has no model", async () => {
  const site = await serveFetch(completion);
  const address = ["http://localhost:8080", site.url];
  try {
    const { agent } = await snippet("ai-sdk", [address], "export { agent };");
    assert.equal((await agent.run("hi")).text, "from a server");
    const { answer, onGpu, anywhere } = await snippet("local-models", [address]);
    assert.equal((await answer("hi")).text, "from a server");
    assert.deepEqual([typeof onGpu, typeof anywhere({ createChatCompletion() {} })], ["function", "function"]);
  } finally {
    await site.stop();
  }
});
