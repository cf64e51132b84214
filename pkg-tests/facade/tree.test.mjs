// The session tree, and approvals that are bound to what was shown.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, tool } from "crablet";
import { memoryStore } from "crablet/stores";
import { scriptedModel } from "crablet/test";

const anything = { type: "object" };
const texts = (messages) =>
  messages.map(({ role, content }) => `${role}: ${content.map(({ text }) => text ?? "…").join("")}`);

async function twoTurns(agent, store) {
  const session = store === undefined ? agent.session() : await agent.open("chat", store);
  await session.send("first").result;
  await session.send("second").result;
  return session;
}

for (const where of ["memory only", "a store"]) {
  test(`a session goes on elsewhere and keeps what it left: ${where}`, async () => {
    const store = where === "a store" ? memoryStore() : undefined;
    const model = scriptedModel(["one", "two", "another two", "from nothing"]);
    const agent = new Agent({ model });
    const session = await twoTurns(agent, store);
    const [, one, second, two] = session.getState().messages;
    await session.label(two.id, "the first try");
    await session.seek(one.id);
    assert.deepEqual(texts(session.getState().messages), ["user: first", "assistant: one"]);
    await session.send("another second").result;
    assert.deepEqual(texts(model.requests[2].messages), ["user: first", "assistant: one", "user: another second"]);

    const restored =
      store === undefined ? agent.session(JSON.parse(JSON.stringify(session))) : await agent.open("chat", store);
    assert.deepEqual(restored.getState().messages, session.getState().messages);
    const tree = restored.tree();
    assert.equal(tree.length, 6);
    assert.equal(tree[2].message.id, second.id);
    assert.equal(tree[2].parentId, one.id);
    assert.equal(tree[4].parentId, one.id);
    assert.equal(tree.find(({ label }) => label === "the first try").message.id, two.id);
    await restored.seek(two.id);
    assert.deepEqual(texts(restored.getState().messages).slice(2), ["user: second", "assistant: two"]);
    await restored.label(two.id);
    assert.ok(restored.tree().every(({ label }) => label === undefined));
    await restored.seek();
    await restored.send("hello").result;
    assert.deepEqual(texts(restored.getState().messages), ["user: hello", "assistant: from nothing"]);
    assert.equal(restored.tree().length, 8);
  });
}

test("a place that is none is refused with the reason", async () => {
  const tools = { look: tool({ description: "looks", input: anything, execute: () => "seen" }) };
  const model = scriptedModel([[{ type: "tool-call", toolName: "look", input: {} }], "done"]);
  const session = new Agent({ model, tools }).session();
  await session.send("go").result;
  const call = session.getState().messages[1];
  await assert.rejects(session.seek(call.id), { kind: "invalid-input", message: /between calls and their results/ });
  await assert.rejects(session.seek("nowhere"), { kind: "invalid-input", message: /nowhere/ });
  await assert.rejects(session.label("nowhere", "x"), { kind: "invalid-input" });
  assert.throws(() => session.fork(call.id), { kind: "invalid-input" });
  assert.equal(session.getState().messages.length, 4);
});

test("nothing is moved under a run", async () => {
  const session = new Agent({
    model: async function* ({ signal }) {
      yield "…";
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  }).session();
  const run = session.send("go");
  for await (const event of run) {
    if (event.type !== "text-delta") continue;
    await assert.rejects(session.seek(), { kind: "busy" });
    await assert.rejects(session.label("x", "y"), { kind: "busy" });
    run.abort();
  }
});

test("what a model wrote is kept to the letter in a fork and after a move", async () => {
  const written = '{\n  "n" : 1.0,\n  "big": 12345678901234567890123\n}';
  const tools = { note: tool({ description: "notes", input: anything, execute: () => "noted" }) };
  const chunks = [{ type: "tool-input-start", id: "1", toolName: "note" }];
  const model = scriptedModel([
    [{ type: "tool-call", callId: "c1", toolName: "note", input: { n: 1 } }],
    "done",
    "again",
  ]);
  const session = new Agent({ model, tools }).session();
  await session.send("go").result;
  const saved = session.toJSON();
  // As a provider would have sent it.
  const lines = saved.snapshot.split("\n").map((line) => {
    const inner = line.replace('"input":{"n":1}', `"input":${written}`);
    return inner === line ? line : JSON.stringify(inner);
  });
  assert.ok(chunks.length > 0 && lines.some((line) => line.startsWith('"')));
  const copy = new Agent({ model, tools }).session({ version: 1, snapshot: lines.join("\n") });
  await copy.label(copy.getState().messages[0].id, "start");
  const fork = copy.fork();
  assert.ok(fork.snapshot.includes(JSON.stringify(written).slice(1, -1).replaceAll("\\n", "\\n")));
  const third = new Agent({ model, tools }).session(fork);
  await third.send("and?").result;
  assert.ok(third.toJSON().snapshot.includes('\\"big\\": 12345678901234567890123'));
});

test("a decision holds for the input that was shown", async () => {
  const ran = [];
  const tools = {
    remove: tool({
      description: "r",
      input: anything,
      needsApproval: true,
      execute: ({ path }) => {
        ran.push(path);
        return "removed";
      },
    }),
  };
  const model = scriptedModel([[{ type: "tool-call", toolName: "remove", input: { path: "/tmp" } }]]);
  const session = new Agent({ model, tools }).session();
  await session.send("remove it").result;
  const saved = JSON.parse(JSON.stringify(session));

  // A hook that changes its mind after the restore.
  const changed = new Agent({
    model: scriptedModel(["it is gone"]),
    tools,
    beforeToolCall: () => ({ action: "change", input: { path: "/" } }),
  }).session(saved);
  const [shown] = changed.getState().pending;
  assert.deepEqual(shown.input, { path: "/tmp" }, "pending before the module is asked");
  changed.approve(shown.callId);
  await changed.resume().result;
  assert.deepEqual(ran, ["/tmp"], "what was approved, and not what a hook would make of it now");

  const [{ callId, inputHash }] = session.getState().pending;
  assert.match(inputHash, /^[0-9a-f]{32}$/);
  const run = new Agent({ model, tools }).session(saved).resume();
  for await (const event of run) {
    if (event.type !== "run-suspended") continue;
    assert.throws(() => run.approve(callId, true, undefined, "0".repeat(32)), { kind: "invalid-input" });
    run.approve(callId, false, "not that", inputHash);
    break;
  }
});

test("an approval that nobody gives expires", async () => {
  const tools = { remove: tool({ description: "r", input: anything, needsApproval: true, execute: () => "removed" }) };
  const model = scriptedModel([[{ type: "tool-call", toolName: "remove", input: {} }], "then not"]);
  const session = new Agent({ model, tools, approvalTimeoutMs: 30 }).session();
  const events = [];
  for await (const event of session.send("go")) events.push(event);
  const result = events.find(({ type }) => type === "tool-result");
  assert.equal(result.isError, true);
  assert.match(JSON.stringify(result), /Nobody decided within 30 ms/);
  assert.equal(events.at(-1).text, "then not");
});
