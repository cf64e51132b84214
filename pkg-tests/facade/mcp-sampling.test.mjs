// Servers that ask for a model's answer.
import assert from "node:assert/strict";
import { test } from "node:test";
import { mcp, sampleWith } from "crablet";
import { scriptedModel } from "crablet/test";
import { handshakeServer, serveAtPort } from "../lib/mcp-servers.mjs";

async function sampled(sampling, request) {
  const [ours, theirs] = mcp.pair();
  const server = serveAtPort(
    theirs,
    handshakeServer({
      "tools/call": async () => ({
        content: [],
        got: await server.ask("sampling/createMessage", request).catch(({ message }) => message),
      }),
    }),
  );
  const client = await mcp.connect(mcp.port(ours, { sampling }), { name: "poet" });
  const { got } = await client.callTool("ask");
  await client.close();
  return got;
}

const request = {
  messages: [{ role: "user", content: { type: "text", text: "a rhyme" } }],
  systemPrompt: "Be brief.",
  maxTokens: 50,
};

test("a model answers if the user allows it", async () => {
  const seen = [];
  const model = scriptedModel([
    ({ instructions, messages }) => {
      seen.push(instructions, messages.at(-1).content[0].text);
      return "time, lime";
    },
  ]);
  const allow = (asked, { server }) => {
    seen.push(server, asked.maxTokens);
    return true;
  };
  const got = await sampled(sampleWith(model, { allow }), request);
  assert.deepEqual(got.content, { type: "text", text: "time, lime" });
  assert.equal(got.stopReason, "endTurn");
  assert.deepEqual(seen, ["poet", 50, "Be brief.", "a rhyme"]);
});

test("a user who does not allow it is obeyed", async () => {
  const got = await sampled(sampleWith(scriptedModel([]), { allow: () => false }), request);
  assert.match(got, /did not allow/);
});
