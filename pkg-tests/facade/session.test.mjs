// What a session promises: its history, its state, its saved form.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, readEvents, tool } from "crablet";
import { scriptedModel } from "crablet/test";
import { collect, endless } from "./support.mjs";

const anything = { type: "object" };
const texts = (messages) => messages.map(({ role, content }) => `${role}: ${content.map(({ text }) => text).join("")}`);

test("a session keeps its history from run to run", async () => {
  const model = scriptedModel(["one", "two"]);
  const session = new Agent({ model }).session();
  await session.send("first").result;
  await session.send("second").result;
  assert.deepEqual(texts(model.requests[1].messages), ["user: first", "assistant: one", "user: second"]);
  assert.deepEqual(texts(session.getState().messages), [
    "user: first",
    "assistant: one",
    "user: second",
    "assistant: two",
  ]);
});

test("what is no message is refused with the reason, and rejects where a promise is given", async () => {
  const agent = new Agent({ model: scriptedModel([]) });
  for (const given of [undefined, 5, { role: "user", content: "hi" }]) {
    const refused = ({ kind, message }) => kind === "invalid-input" && message.includes("a message is text");
    assert.throws(() => agent.stream(given), refused);
    const running = agent.run(given);
    await assert.rejects(running, refused);
  }
});

test("a second prompt while a run is active is refused, and one after it is welcome", async () => {
  const session = new Agent({ model: endless() }).session();
  const run = session.send("first");
  const events = collect(run);
  assert.throws(
    () => session.send("second"),
    (error) => error.kind === "busy",
  );
  run.abort();
  await events;
  assert.equal(session.getState().status, "idle");
  session.send("third").abort();
});

test("the state is the same object until something changes, and every change is told", async () => {
  const session = new Agent({ model: scriptedModel([["a", "b"]]) }).session();
  const states = [];
  const unsubscribe = session.subscribe(() => states.push(session.getState()));
  assert.equal(session.getState(), session.getState());
  session.send("hi");
  await new Promise((resolve) => {
    session.subscribe(() => session.getState().status === "idle" && resolve());
  });
  assert.equal(states[0].status, "running");
  assert.ok(
    states.some(({ streaming }) => streaming?.content[0].text === "a"),
    "the streamed message is shown",
  );
  assert.equal(states.at(-1).status, "idle");
  assert.equal(states.at(-1).streaming, undefined);
  assert.equal(new Set(states).size, states.length, "each state is an object of its own");
  unsubscribe();
});

test("a subscriber that throws is reported, and neither ends the run nor keeps the others from being told", async () => {
  const reported = [];
  const { error } = console;
  console.error = (...given) => reported.push(given);
  try {
    const session = new Agent({ model: scriptedModel(["one"]) }).session();
    const told = [];
    session.subscribe(() => {
      throw new Error("of the page");
    });
    session.subscribe(() => told.push(session.getState().status));
    assert.equal((await session.send("hi").result).text, "one");
    assert.equal(told.at(-1), "idle");
    assert.equal(reported.length, told.length);
    assert.match(String(reported[0][1]), /of the page/);
  } finally {
    console.error = error;
  }
});

test("an answer to a call that does not wait is refused, and spoils no other", async () => {
  const ran = [];
  const execute = () => {
    ran.push("removed");
    return "removed";
  };
  const tools = {
    remove: tool({ description: "r", input: anything, needsApproval: true, execute }),
    locate: tool({ description: "l", input: anything }),
  };
  const calls = ["remove", "locate"].map((toolName) => ({ type: "tool-call", toolName, callId: toolName, input: {} }));
  const session = new Agent({ model: scriptedModel([calls, "done"]), tools }).session();
  const refused = { kind: "invalid-input" };
  assert.throws(() => session.approve("remove"), refused, "before anything was asked");
  assert.equal((await session.send("go").result).stopReason, "suspended");
  session.approve("remove");
  assert.throws(() => session.approve("remove"), refused, "twice");
  assert.throws(() => session.toolResult("remove", "of the page"), refused, "no call of a client-side tool");
  session.toolResult("locate", "Oslo");
  assert.throws(() => session.toolResult("locate", "Bergen"), refused, "twice");
  assert.equal((await session.resume().result).text, "done");
  assert.deepEqual(ran, ["removed"]);
  assert.throws(() => session.approve("remove"), refused, "after the run");
});

test("a session restores from JSON, in another agent", async () => {
  const session = new Agent({ model: scriptedModel(["one"]) }).session();
  await session.send("first").result;
  const saved = JSON.parse(JSON.stringify(session));
  const model = scriptedModel(["two"]);
  const restored = new Agent({ model }).session(saved);
  assert.deepEqual(
    texts(restored.getState().messages),
    ["user: first", "assistant: one"],
    "before the module is asked",
  );
  await restored.send("second").result;
  assert.deepEqual(texts(model.requests[0].messages), ["user: first", "assistant: one", "user: second"]);
});

test("many idle sessions go on where they were", async () => {
  const agent = new Agent({
    model: async function* ({ messages }) {
      yield `${messages.length}`;
    },
  });
  const sessions = Array.from({ length: 40 }, () => agent.session());
  for (const session of sessions) await session.send("a").result;
  for (const session of sessions) assert.equal((await session.send("b").result).text, "3");
});

test("a run saved while an approval is open is resumed with the decision", async () => {
  const ran = [];
  const tools = {
    remove: tool({
      description: "r",
      input: anything,
      needsApproval: true,
      execute: () => {
        ran.push("removed");
        return "removed";
      },
    }),
  };
  const first = new Agent({
    model: scriptedModel([[{ type: "tool-call", toolName: "remove", input: {} }]]),
    tools,
  }).session();
  const { stopReason } = await first.send("remove it").result;
  assert.equal(stopReason, "suspended");
  const { status, pending } = first.getState();
  assert.equal(status, "awaiting-approval");
  assert.equal(pending.length, 1);

  const restored = new Agent({ model: scriptedModel(["it is gone"]), tools }).session(
    JSON.parse(JSON.stringify(first)),
  );
  // Before the run has begun, as a worker does that is started by the decision.
  const { result } = restored.resume();
  restored.approve(pending[0].callId);
  const { text } = await result;
  assert.equal(text, "it is gone");
  assert.deepEqual(
    restored.getState().messages.map(({ role }) => role),
    ["user", "assistant", "tool", "assistant"],
  );
  assert.deepEqual(ran, ["removed"]);
});

test("an approval while the run is read lets it go on", async () => {
  const tools = { remove: tool({ description: "r", input: anything, needsApproval: true, execute: () => "removed" }) };
  const model = scriptedModel([[{ type: "tool-call", toolName: "remove", input: {} }], "done"]);
  const session = new Agent({ model, tools }).session();
  const events = [];
  for await (const event of session.send("go")) {
    events.push(event.type);
    if (event.type === "run-suspended") session.approve(session.getState().pending[0].callId, false, "not today");
  }
  assert.equal(events.at(-1), "run-end");
  assert.match(JSON.stringify(model.requests[1].messages.at(-1)), /not today/);
});

test("an answer over HTTP does not end at an approval that is decided at once", async () => {
  const tools = { remove: tool({ description: "r", input: anything, needsApproval: true, execute: () => "removed" }) };
  for (const approve of [() => true, async () => true]) {
    const model = scriptedModel([[{ type: "tool-call", toolName: "remove", input: {} }], "done"]);
    const events = await collect(readEvents(new Agent({ model, tools, approve }).stream("go").toResponse()));
    assert.equal(events.at(-1).text, "done");
  }
});

test("what is no saved session is refused with a reason", () => {
  const agent = new Agent({ model: scriptedModel([]) });
  assert.throws(
    () => agent.session({ messages: [] }),
    (error) => error.kind === "invalid-input",
  );
  assert.throws(
    () => agent.session({ version: 1, snapshot: "{" }),
    (error) => error.kind === "invalid-input",
  );
  assert.throws(() => agent.session({ version: 9 }), /newer crablet/);
});

/** A session whose run waits for a decision about the call "c1", and how often the tool ran. */
async function asking() {
  const ran = [];
  const remove = tool({ description: "r", input: anything, needsApproval: true, execute: () => ran.push("removed") });
  const model = scriptedModel([[{ type: "tool-call", toolName: "remove", input: {}, callId: "c1" }], "done", "again"]);
  const session = new Agent({ model, tools: { remove } }).session();
  await session.send("remove it").result;
  return { session, ran };
}

test("a decision about a call whose tool is gone does not keep the run from going on", async () => {
  const { session, ran } = await asking();
  const model = scriptedModel(["it cannot be removed"]);
  const restored = new Agent({ model }).session(session.toJSON());
  restored.approve("c1");
  assert.equal((await restored.resume().result).text, "it cannot be removed");
  assert.match(model.requests[0].messages.at(-1).content[0].content[0].text, /no longer there/);
  assert.deepEqual(ran, []);
});

test("a prompt is refused at once while a run waits, which resume() and abort() end", async () => {
  const { session, ran } = await asking();
  assert.throws(() => session.send("something else"), { kind: "busy", message: /resume\(\) it first/ });
  const { status, error, pending } = session.getState();
  assert.deepEqual([status, error, pending.length], ["awaiting-approval", undefined, 1]);
  const run = session.resume();
  run.abort();
  await assert.rejects(run.result, { name: "AbortError" });
  assert.equal((await session.send("something else").result).text, "done");
  assert.deepEqual(ran, []);
});

test("a run that was aborted before it began leaves its session as it was", async () => {
  const session = new Agent({ model: scriptedModel(["one"]) }).session();
  await assert.rejects(session.send("hi", { signal: AbortSignal.abort() }).result, { name: "AbortError" });
  const { status, error } = session.getState();
  assert.deepEqual([status, error], ["idle", undefined]);
  assert.equal((await session.send("hi").result).text, "one");
});

test("whoever is told that a session is idle may send the next prompt at once", async () => {
  const session = new Agent({ model: scriptedModel(["one", "two"]) }).session();
  let next;
  session.subscribe(() => {
    if (session.getState().status === "idle") next ??= session.send("second");
  });
  await session.send("first").result;
  assert.equal((await next.result).text, "two");
});

test("whoever leaves the loop of a run, or cancels its stream, may send the next prompt at once", async () => {
  const tools = { wait: tool({ description: "w", input: anything, execute: () => new Promise(() => {}) }) };
  async function* model({ messages }) {
    yield "looking";
    if (messages.at(-1).content[0].text === "go") yield { type: "tool-call", toolName: "wait", input: {} };
  }
  for (const last of ["run-start", "text-delta", "tool-start"]) {
    const session = new Agent({ model, tools }).session();
    for await (const { type } of session.send("go")) if (type === last) break;
    assert.equal((await session.send("and now?").result).text, "looking", last);
  }
  const session = new Agent({ model, tools }).session();
  const reader = session.send("go").textStream.getReader();
  await reader.read();
  await reader.cancel();
  assert.equal((await session.send("and now?").result).text, "looking");
});
