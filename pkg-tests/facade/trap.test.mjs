// What a trap in the module leaves behind: no run that hangs, no dead process, and sessions that go on. The trap is a real one:
// the module runs out of memory, since its memory section is given a limit.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Agent, CrabletError, init, mcp, tool } from "crablet";
import { memoryStore } from "crablet/stores";
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

test("three sessions at work when the trap comes end, keep their last checkpoint, and go on in a fresh instance", async () => {
  const input = { type: "object" };
  const store = memoryStore();
  const [working, streaming] = [deferred(), deferred()];
  let isHealed = false;
  let atWork = 0;
  const forever = () => new Promise(() => {});
  const begun = () => {
    atWork += 1;
    if (atWork === 2) working.resolve();
    return forever();
  };
  const calls = { work: ["slow"], ask: ["once", "guarded"] };
  async function* scripted({ messages }) {
    const last = messages.at(-1);
    if (isHealed) yield "healed";
    else if (last.role === "tool") yield "done";
    else {
      const [{ text }] = last.content;
      if (text in calls) {
        for (const toolName of calls[text]) yield { type: "tool-call", callId: toolName, toolName, input: {} };
      } else if (text === "stream") {
        yield "half of ";
        streaming.resolve();
        await forever();
      } else yield* model({ messages });
    }
  }
  const agent = new Agent({
    model: scripted,
    tools: {
      slow: tool({ description: "s", input, repeatable: true, execute: () => (isHealed ? "again" : begun()) }),
      once: tool({ description: "o", input, execute: () => begun() }),
      guarded: tool({ description: "g", input, needsApproval: true, execute: () => "allowed" }),
    },
  });
  const sessions = {
    work: agent.session(),
    ask: await agent.open("asked", store),
    stream: agent.session(),
  };
  const results = Object.entries(sessions).map(([prompt, session]) => session.send(prompt).result);
  const outcomes = Promise.allSettled(results);
  await Promise.all([working.promise, streaming.promise]);
  while (sessions.ask.getState().pending.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));

  await assert.rejects(agent.run("fail"), isInternal);
  for (const { reason } of await outcomes) assert.ok(isInternal(reason), String(reason));

  const roles = (session) => session.getState().messages.map(({ role }) => role);
  assert.deepEqual(Object.values(sessions).map(roles), [["user", "assistant"], ["user", "assistant"], ["user"]]);
  isHealed = true;
  for (const session of [sessions.work, sessions.stream]) {
    const restored = agent.session(JSON.parse(JSON.stringify(session.toJSON())));
    for (const each of [session, restored]) assert.equal((await each.resume().result).text, "healed");
  }
  assert.deepEqual(roles(sessions.work), ["user", "assistant", "tool", "assistant"]);
  const asked = await agent.open("asked", store);
  asked.approve("guarded");
  assert.equal((await asked.resume().result).text, "healed");
  assert.deepEqual(roles(asked), ["user", "assistant", "tool", "assistant"]);
  const [interrupted, allowed] = asked.getState().messages[2].content;
  assert.deepEqual([interrupted.isError, allowed.isError ?? false, atWork], [true, false, 2]);
});
