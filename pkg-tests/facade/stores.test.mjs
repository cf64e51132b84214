// Sessions in a store, and stores that keep their contract.
import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Agent, tool } from "crablet";
import { conflict, fileStore, kvArchive, memoryStore } from "crablet/stores";
import { scriptedModel } from "crablet/test";
import { keepsTheContract } from "../stores/contract.mjs";

const anything = { type: "object" };
const texts = (messages) =>
  messages.map(({ role, content }) => `${role}: ${content.map(({ text }) => text ?? "…").join("")}`);

const folder = await mkdtemp(join(tmpdir(), "crablet-stores-"));
test.after(() => rm(folder, { recursive: true, force: true }));

test("memory keeps the contract", () => keepsTheContract(memoryStore()));

test("files keep the contract", () => keepsTheContract(fileStore(join(folder, "contract"))));

// As the file store of the Rust crate names them, so that each reads what the other wrote.
test("files have the names that the crate gives them", async () => {
  const store = fileStore(join(folder, "names"));
  await store.replace("user:7/чат.1", 0, ['{"format":1}']);
  await store.append("user:7/чат.1", 1, ["two"]);
  const names = await readdir(join(folder, "names", "user%3A7%2F%D1%87%D0%B0%D1%82%2E1"));
  assert.deepEqual(names.sort(), ["0000000001.jsonl", "0000000002.jsonl"]);
});

test("of many writers of a file store at once one wins each version", async () => {
  const store = fileStore(join(folder, "race"));
  for (let version = 0; version < 20; version += 1) {
    const entry = `{"format":${version}}`;
    const writing = Array.from({ length: 8 }, (_, writer) =>
      writer % 2 === 0 ? store.replace("a", version, [entry]) : store.append("a", version, [entry]),
    );
    const outcomes = await Promise.allSettled(writing);
    assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1, `version ${version}`);
    for (const { reason } of outcomes) if (reason !== undefined) assert.equal(reason.kind, "conflict");
    assert.equal((await store.read("a")).version, version + 1);
  }
});

test("a session in a store is saved with each step, and goes on in another agent", async () => {
  const store = fileStore(join(folder, "sessions"));
  const session = await new Agent({ model: scriptedModel(["one", "two"]) }).open("chat", store);
  await session.send("first").result;
  const { version, entries } = await store.read("chat");
  assert.ok(version > 1, "the prompt and the answer are writes of their own");
  assert.match(entries[0], /^\{"format":"crablet-session"/);
  await session.send("second").result;
  const lines = (await store.read("chat")).entries;
  assert.deepEqual(lines.slice(0, entries.length), entries, "what was written stays");

  const model = scriptedModel(["three"]);
  const again = await new Agent({ model }).open("chat", store);
  assert.deepEqual(texts(again.getState().messages), [
    "user: first",
    "assistant: one",
    "user: second",
    "assistant: two",
  ]);
  await again.send("third").result;
  assert.equal(model.requests[0].messages.length, 5);
  assert.deepEqual(await store.list(), ["chat"]);
});

test("a checkpoint writes what has changed and not the history", async () => {
  const sizes = [];
  const memory = memoryStore();
  const store = {
    ...memory,
    append: (id, version, entries) => {
      sizes.push(entries.join("\n").length);
      return memory.append(id, version, entries);
    },
  };
  const agent = new Agent({
    model: async function* () {
      yield "yes";
    },
  });
  const session = await agent.open("chat", store);
  for (let turn = 0; turn < 30; turn += 1) await session.send("go on").result;
  assert.ok(Math.max(...sizes.slice(-10)) < 1.2 * Math.max(...sizes.slice(2, 12)), `${sizes}`);
});

test("of two sessions on one conversation the second to write ends with a conflict and does nothing", async () => {
  const store = memoryStore();
  const ran = [];
  const tools = { act: tool({ description: "acts", input: anything, execute: () => ran.push("acted") }) };
  const agentOf = (answers) => new Agent({ model: scriptedModel(answers), tools });
  await (await agentOf(["hello"]).open("chat", store)).send("hi").result;
  const first = await agentOf(["first"]).open("chat", store);
  const second = await agentOf([[{ type: "tool-call", toolName: "act", input: {} }]]).open("chat", store);
  await first.send("me").result;
  await assert.rejects(second.send("me too").result, { kind: "conflict" });
  assert.equal(second.getState().error.kind, "conflict");
  assert.deepEqual(ran, []);
  const third = await agentOf(["third"]).open("chat", store);
  assert.deepEqual(texts(third.getState().messages).slice(2), ["user: me", "assistant: first"]);
  await assert.rejects(second.send("again").result, { kind: "conflict" }, "and stays refused");
});

test("a store that fails ends the run with kind storage, and is given everything once it works", async () => {
  const memory = memoryStore();
  let fails = true;
  const write =
    (how) =>
    async (...given) => {
      if (fails) throw new Error("the disk is full");
      return memory[how](...given);
    };
  const store = { ...memory, append: write("append"), replace: write("replace") };
  const model = scriptedModel(["heard"]);
  const session = await new Agent({ model }).open("chat", store);
  await assert.rejects(session.send("one").result, { kind: "storage", message: /the disk is full/ });
  assert.equal(model.requests.length, 0, "the model is not called unsaved");
  fails = false;
  await session.send("two").result;
  const again = await new Agent({ model: scriptedModel([]) }).open("chat", memory);
  assert.deepEqual(texts(again.getState().messages), ["user: one", "user: two", "assistant: heard"]);
});

test("a store that cannot be read, or holds something else, is told", async () => {
  const agent = new Agent({ model: scriptedModel([]) });
  const broken = { ...memoryStore(), read: () => Promise.reject(new Error("no access")) };
  await assert.rejects(agent.open("chat", broken), { kind: "storage", message: /no access/ });
  const other = { ...memoryStore(), read: async () => ({ version: 1, entries: ["something"] }) };
  await assert.rejects(agent.open("chat", other), { kind: "invalid-input" });
});

test("what an aborted run did is saved too", async () => {
  const store = memoryStore();
  const session = await new Agent({ model: scriptedModel([["a", new Promise(() => {})]]) }).open("chat", store);
  const run = session.send("go");
  for await (const event of run) if (event.type === "text-delta") run.abort();
  await session.seek(session.getState().messages[0].id);
  const again = await new Agent({ model: scriptedModel(["fine"]) }).open("chat", store);
  assert.equal(again.getState().status, "idle");
  await again.send("next").result;
});

test("sessions that make room for others in the module lose nothing", async () => {
  const store = memoryStore();
  const agent = new Agent({
    model: async function* ({ messages }) {
      yield `${messages.length}`;
    },
  });
  const sessions = await Promise.all(Array.from({ length: 20 }, (_, number) => agent.open(`chat ${number}`, store)));
  for (const session of sessions) await session.send("a").result;
  for (const session of sessions) assert.equal((await session.send("b").result).text, "3");
  const again = await agent.open("chat 0", store);
  assert.equal(again.getState().messages.length, 4);
});

test("a session that makes room for others in the module does not keep out who opened its conversation since", async () => {
  const store = memoryStore();
  const agent = new Agent({
    model: async function* ({ messages }) {
      yield `${messages.length}`;
    },
  });
  const first = await agent.open("chat", store);
  await first.send("a").result;
  const second = await agent.open("chat", store);
  for (let number = 0; number < 20; number += 1) await agent.session().send("a").result;
  assert.equal((await second.send("b").result).text, "3");
  await assert.rejects(first.send("c").result, (error) => error.kind === "conflict");
});

test("a fork begins elsewhere in a store", async () => {
  const store = memoryStore();
  const session = await new Agent({ model: scriptedModel(["one", "two"]) }).open("chat", store);
  await session.send("first").result;
  await session.send("second").result;
  const [, answer] = session.getState().messages;
  const model = scriptedModel(["another two"]);
  const fork = await new Agent({ model }).open("other", store, { saved: session.fork(answer.id) });
  await fork.send("another second").result;
  assert.deepEqual(texts(model.requests[0].messages), ["user: first", "assistant: one", "user: another second"]);
  assert.equal(session.getState().messages.length, 4);
  const stored = await new Agent({ model: scriptedModel([]) }).open("other", store);
  assert.equal(stored.getState().messages.length, 4);
});

test("Workers KV takes finished sessions only", async () => {
  const values = new Map();
  const archive = kvArchive({
    get: async (key) => values.get(key) ?? null,
    put: async (key, value) => void values.set(key, value),
    delete: async (key) => void values.delete(key),
    list: async ({ prefix, cursor }) => {
      const names = [...values.keys()].filter((name) => name.startsWith(prefix)).sort();
      const start = Number(cursor ?? 0);
      const keys = names.slice(start, start + 1).map((name) => ({ name }));
      return { keys, list_complete: start + 1 >= names.length, cursor: String(start + 1) };
    },
  });
  const tools = { remove: tool({ description: "r", input: anything, needsApproval: true, execute: () => "removed" }) };
  const agent = new Agent({
    model: scriptedModel([[{ type: "tool-call", toolName: "remove", input: {} }], "one", "two"]),
    tools,
  });
  const open = agent.session();
  await open.send("remove it").result;
  await assert.rejects(archive.save("open", open), { kind: "invalid-input" });
  const done = agent.session();
  await done.send("hi").result;
  await archive.save("b", done);
  await archive.save("a", done.toJSON());
  assert.deepEqual(await archive.list(), ["a", "b"]);
  const again = agent.session(await archive.read("b"));
  await again.send("more").result;
  assert.equal(again.getState().messages.length, 4);
  await archive.delete("b");
  assert.equal(await archive.read("b"), undefined);
});

test("a store of one's own says conflict in the words of the package", () => {
  assert.equal(conflict("chat", 3).kind, "conflict");
});

test("writers that were refused leave nothing", async () => {
  const names = await readdir(join(folder, "race"), { recursive: true });
  assert.deepEqual(
    names.filter((name) => /(^|[\\/])\./.test(name)),
    [],
  );
});
