// Messages that are added while a run is at work, results of client-side tools, and the long-lived form.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, tool, toolOutput } from "crablet";
import { scriptedModel } from "crablet/test";
import { deferred, endless } from "./support.mjs";

const anything = { type: "object" };
const call = (toolName, input = {}, callId) => ({ type: "tool-call", toolName, input, ...(callId && { callId }) });
const texts = (messages) => messages.map(({ role, content }) => `${role}: ${content[0].text ?? content[0].type}`);

test("whether a steered message was delivered can be awaited", async () => {
  const gate = deferred();
  const tools = { wait: tool({ description: "w", input: anything, execute: () => gate.promise }) };
  const session = new Agent({ model: scriptedModel([[call("wait")], "done"]), tools }).session();
  const run = session.send("go");
  let outcomes;
  for await (const event of run) {
    if (event.type !== "tool-start") continue;
    const kept = run.steer("in English");
    const taken = run.steer("never mind");
    outcomes = Promise.all([kept, taken]);
    const { steers } = session.queued();
    assert.deepEqual(
      steers.map(({ content }) => content[0].text),
      ["in English", "never mind"],
    );
    session.editQueued(steers[0].id, "in French");
    session.unqueue(steers[1].id);
    assert.throws(
      () => session.unqueue(steers[1].id),
      (error) => error.kind === "invalid-input",
    );
    gate.resolve("ok");
  }
  assert.deepEqual(await outcomes, ["delivered", "dropped"]);
  assert.ok(texts(session.getState().messages).includes("user: in French"));
});

test("a message steered into a run that is aborted is dropped", async () => {
  const run = new Agent({ model: endless() }).stream("go");
  let outcome;
  for await (const event of run) {
    if (event.type !== "text-delta" || outcome !== undefined) continue;
    outcome = run.steer("wait");
    run.abort();
  }
  assert.equal(await outcome, "dropped");
  assert.throws(() => run.steer("late"), /the run is over/);
});

test("follow-ups wait for the end, can be read from the saved session, and be edited", async () => {
  const session = new Agent({ model: scriptedModel(["one", "two"]) }).session();
  const run = session.send("go");
  for await (const event of run) {
    if (event.type !== "text-start" || session.queued().followUps.length > 0) continue;
    if (session.getState().messages.length > 1) continue;
    const id = run.followUp("and then");
    assert.deepEqual(session.queued().followUps, [{ id, content: [{ type: "text", text: "and then" }] }]);
    const saved = new Agent({ model: scriptedModel([]) }).session(session.toJSON());
    assert.equal(saved.queued().followUps[0].id, id);
    session.editQueued(id, "and after that");
  }
  assert.deepEqual(texts(session.getState().messages), [
    "user: go",
    "assistant: one",
    "user: and after that",
    "assistant: two",
  ]);
});

test("a client-side tool suspends the run until its result is given", async () => {
  const model = scriptedModel([[call("locate", { precise: true }, "c1")], "In Oslo."]);
  const tools = { locate: tool({ description: "l", input: anything }) };
  const session = new Agent({ model, tools }).session();
  const { stopReason } = await session.send("Where am I?").result;
  assert.equal(stopReason, "suspended");
  assert.equal(session.getState().status, "awaiting-result");
  assert.deepEqual(session.getState().clientCalls, [{ callId: "c1", toolName: "locate", input: { precise: true } }]);

  const answers = scriptedModel(["In Oslo."]);
  const restored = new Agent({ model: answers, tools }).session(JSON.parse(JSON.stringify(session.toJSON())));
  assert.deepEqual(restored.getState().clientCalls, session.getState().clientCalls);
  restored.toolResult("c1", { city: "Oslo" });
  assert.equal((await restored.resume().result).text, "In Oslo.");
  assert.deepEqual(restored.getState().clientCalls, []);

  session.toolResult("c1", toolOutput({ content: "there is no GPS here", isError: true }));
  assert.equal((await session.resume().result).text, "In Oslo.");
  assert.equal(model.requests[1].messages.at(-1).content[0].isError, true);
});

test("a client-side tool may be answered while the run is read", async () => {
  const tools = { locate: tool({ description: "l", input: anything }) };
  const run = new Agent({ model: scriptedModel([[call("locate")], "In Oslo."]), tools }).stream("Where am I?");
  const seen = [];
  for await (const event of run) {
    seen.push(event.type);
    if (event.type === "tool-start" && event.clientSide) run.toolResult(event.callId, "Oslo");
  }
  assert.equal((await run.result).text, "In Oslo.");
  assert.throws(() => run.toolResult("x", "late"), /the run is over/);
});

test("the long-lived form answers in order, and an error is one answer of many", async () => {
  const model = scriptedModel(["one", new Error("broken"), "three"]);
  const loop = new Agent({ model, retry: false }).loop();
  for (const prompt of ["first", "second", "third"]) loop.send(prompt);
  assert.equal((await loop.next()).text, "one");
  await assert.rejects(loop.next(), /broken/);
  assert.equal((await loop.next()).text, "three");
  const waiting = loop.next();
  await loop.stop();
  assert.equal(await waiting, undefined);
  assert.throws(() => loop.send("late"), /stopped/);
});

test("stopping finishes what is worked on, drops what waits, and leaves the answers", async () => {
  const loop = new Agent({ model: scriptedModel(["one", "two"]) }).loop();
  loop.send("first");
  loop.send("second");
  await loop.stop();
  const answers = [];
  for await (const { text } of loop) answers.push(text);
  assert.deepEqual(answers, ["one"]);

  const endlessly = new Agent({ model: endless() }).loop();
  endlessly.send("go");
  const answer = endlessly.next();
  answer.catch(() => {});
  await endlessly.stop({ abort: true });
  await assert.rejects(answer, { kind: "aborted" });
});

test("a follow-up of the long-lived form is answered in the same run", async () => {
  const gate = deferred();
  const tools = { wait: tool({ description: "w", input: anything, execute: () => gate.promise }) };
  const loop = new Agent({ model: scriptedModel([[call("wait")], "one", "two"]), tools }).loop();
  const started = new Promise((resolve) => {
    loop.session.subscribe(() => loop.session.getState().streaming && resolve());
  });
  loop.send("first");
  await started;
  loop.followUp("and more");
  gate.resolve("ok");
  assert.equal((await loop.next()).text, "two");
  await loop.stop();
  assert.deepEqual(texts(loop.session.getState().messages).slice(-3), [
    "assistant: one",
    "user: and more",
    "assistant: two",
  ]);
});

test("the long-lived form waits for an approval and goes on with it", async () => {
  const tools = { a: tool({ description: "a", input: anything, needsApproval: true, execute: () => "ok" }) };
  const agent = () => new Agent({ model: scriptedModel([[call("a")], "done", "second"]), tools });
  const loop = agent().loop();
  loop.send("go");
  loop.send("then this");
  assert.equal((await loop.next()).stopReason, "suspended");
  loop.session.approve(loop.session.getState().pending[0].callId);
  loop.continue();
  assert.equal((await loop.next()).text, "done");
  assert.equal((await loop.next()).text, "second");
  await loop.stop();
});
