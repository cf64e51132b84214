// What a trap in the module leaves behind: no run that hangs, no dead process, and sessions that go on. The trap is a real one:
// the module runs out of memory, since its memory section is given a limit.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Agent, CrabletError, init, mcp } from "crablet";
import { deferred } from "./support.mjs";

/** Pages of 64 KiB that the module may have beyond those that it begins with. */
const SPARE_PAGES = 40;

/** More text than that many pages hold. */
const TOO_MUCH = "x".repeat(SPARE_PAGES * 65_536);

await init(limited(await readFile(new URL(import.meta.resolve("crablet/wasm")))));

/** The module with a limit in its memory section. */
function limited(bytes) {
  let at = 8;
  const number = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const leb = (value) => (value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...leb(value >>> 7)]);
  while (at < bytes.length) {
    const start = at;
    const id = bytes[at++];
    const length = number();
    const end = at + length;
    if (id === 5) {
      assert.deepEqual([number(), number()], [1, 0], "one memory, without a limit");
      const pages = number();
      const section = [1, 1, ...leb(pages), ...leb(pages + SPARE_PAGES)];
      return Buffer.concat([
        bytes.subarray(0, start),
        Buffer.from([5, section.length, ...section]),
        bytes.subarray(end),
      ]);
    }
    at = end;
  }
  throw new Error("the module has no memory section");
}

const isInternal = (error) => CrabletError.is(error) && error.kind === "internal" && error.cause instanceof Error;

/** Answers; at the prompt `fail` with more than the module can hold. */
async function* model({ messages }) {
  const last = JSON.stringify(messages.at(-1).content);
  yield last.includes("fail") ? TOO_MUCH : `answer ${messages.length}`;
}

test("a trap ends the runs and calls of its instance with kind internal, and the next ones work", async () => {
  const agent = new Agent({ model });
  const other = deferred();
  const waiting = new Agent({
    model: async function* () {
      other.resolve();
      await new Promise(() => {});
      yield "";
    },
  }).stream("hi");
  const silent = await mcp.connect(mcp.custom({ request: answering }));
  const call = silent.callTool("never");
  const outcomes = Promise.allSettled([waiting.result, call]);
  await other.promise;

  await assert.rejects(agent.run("fail"), isInternal);
  for (const { reason } of await outcomes) assert.ok(isInternal(reason), String(reason));
  await assert.rejects(silent.callTool("again"), isInternal);
  await silent.close();

  assert.equal((await agent.run("hello")).text, "answer 1");
  await agent.close();
});

/** An MCP server whose one tool never answers. */
function answering({ id, method }) {
  const result = (value) => ({ jsonrpc: "2.0", id, result: value });
  if (method === "initialize")
    return result({
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "s", version: "1" },
    });
  if (method === "tools/call") return new Promise(() => {});
  return id === undefined
    ? undefined
    : { jsonrpc: "2.0", id, error: { code: -32_601, message: "there is no such method" } };
}

test("sessions keep their history, and the one that was at work goes on from its last checkpoint", async () => {
  let isHealed = false;
  const agent = new Agent({
    model: async function* (request) {
      if (isHealed) yield "healed";
      else yield* model(request);
    },
  });
  const idle = agent.session();
  await idle.send("first").result;
  const session = agent.session();
  await session.send("hello").result;
  await assert.rejects(session.send("fail").result, isInternal);

  assert.equal(session.getState().status, "interrupted");
  assert.deepEqual(
    session.getState().messages.map(({ role }) => role),
    ["user", "assistant", "user"],
  );
  const saved = session.toJSON();
  isHealed = true;
  assert.equal((await session.resume().result).text, "healed");
  assert.equal((await agent.session(saved).resume().result).text, "healed");
  assert.equal((await idle.send("second").result).text, "healed");
  assert.equal(idle.getState().messages.length, 4);
});
