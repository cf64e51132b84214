// The module's memory is released when runs end, without the help of a garbage collector, which cannot see it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, tool } from "crablet";

test("the memory of the module does not grow over 10 000 runs after a warm-up, however they end", async () => {
  let memory;
  const { instantiate } = WebAssembly;
  WebAssembly.instantiate = async (...args) => {
    const result = await instantiate.apply(WebAssembly, args);
    memory = (result.instance ?? result).exports.memory;
    return result;
  };
  async function* model({ messages }) {
    if (messages.at(-1).role === "tool") yield "done";
    else yield { type: "tool-call", toolName: "now", input: {} };
  }
  const tools = { now: tool({ description: "n", input: { type: "object" }, execute: () => "12" }) };
  const agent = new Agent({ model, tools });
  const rounds = async (count) => {
    for (let round = 0; round < count; round += 1) {
      await agent.run("to the end");
      for await (const event of agent.stream("left early")) if (event.type === "tool-result") break;
      await agent.session().send("in a session").result;
    }
  };
  await rounds(100);
  const { byteLength } = memory.buffer;
  await rounds(Math.ceil(10_000 / 3));
  // The most that is at work at once may come after the warm-up, at the border of a page; a leak of seven bytes a run takes more.
  const grown = memory.buffer.byteLength - byteLength;
  assert.ok(grown <= 65_536, `it grew by ${grown} bytes`);
});
