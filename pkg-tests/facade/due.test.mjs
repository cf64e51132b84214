// When a session that nothing works on has something to do, for places that are started at a time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, openaiCompatible, subAgent, tool } from "crablet";
import { memoryStore } from "crablet/stores";
import { scriptedModel } from "crablet/test";

const pay = (needsApproval) =>
  tool({ description: "Pays.", input: { type: "object" }, needsApproval, execute: () => "paid" });
const call = { type: "tool-call", callId: "1", toolName: "pay", input: {} };
const isAbout = (time, wanted) => assert.ok(Math.abs(time - wanted) < 30_000, `${time} is not about ${wanted}`);

test("nothing is due in a session that rests", async () => {
  const session = new Agent({ model: scriptedModel(["one"]), timeoutMs: 1_000_000 }).session();
  assert.equal(session.dueAt(), undefined);
  await session.send("hi").result;
  assert.equal(session.dueAt(), undefined);
});

test("the first deadline of a run that waits is due, also once it is restored", async () => {
  const options = { model: scriptedModel([[call]]), tools: { pay: pay(true) } };
  const begun = Date.now();
  for (const [limits, due] of [
    [{ approvalTimeoutMs: 3_600_000, timeoutMs: 86_400_000 }, 3_600_000],
    [{ approvalTimeoutMs: 86_400_000, timeoutMs: 3_600_000 }, 3_600_000],
    [{ timeoutMs: 86_400_000 }, 86_400_000],
  ]) {
    const agent = new Agent({ ...options, model: scriptedModel([[call]]), ...limits });
    const session = agent.session();
    await session.send("pay").result;
    isAbout(session.dueAt(), begun + due);
    isAbout(agent.session(JSON.parse(JSON.stringify(session))).dueAt(), begun + due);
  }
});

test("a question of a sub-agent is due as one of the agent itself", async () => {
  const clerk = new Agent({ model: scriptedModel([[call]]), tools: { pay: pay(true) }, approvalTimeoutMs: 3_600_000 });
  const ask = { ...call, toolName: "clerk", input: { prompt: "pay" } };
  const tools = { clerk: subAgent({ description: "Asks the clerk.", agent: clerk }) };
  const agent = new Agent({ model: scriptedModel([[ask]]), tools });
  const session = agent.session();
  const begun = Date.now();
  await session.send("pay").result;
  isAbout(session.dueAt(), begun + 3_600_000);
});

test("what is due is done by going on at that time", async () => {
  const agent = new Agent({
    model: scriptedModel([[call], "it is over"]),
    tools: { pay: pay(true) },
    approvalTimeoutMs: 20,
  });
  const session = agent.session();
  await session.send("pay").result;
  const saved = JSON.parse(JSON.stringify(session));
  const later = agent.session(saved);
  while (later.dueAt() > Date.now())
    await new Promise((resolve) => setTimeout(resolve, later.dueAt() - Date.now() + 1));
  const { text } = await later.resume().result;
  assert.equal(text, "it is over");
  assert.equal(later.dueAt(), undefined);
});

test("a store has the wait before the model is asked again, so that whoever goes on keeps to it", async () => {
  const store = memoryStore();
  let waits;
  const waiting = new Promise((resolve) => {
    waits = resolve;
  });
  const append = async (id, version, entries) => {
    const written = await store.append(id, version, entries);
    if (entries.some((entry) => entry.includes('"type":"waiting"'))) waits();
    return written;
  };
  const fetch = async () => new Response("{}", { status: 503, headers: { "retry-after": "50" } });
  const agent = new Agent({ model: openaiCompatible("any", { baseUrl: "http://model.invalid/v1", fetch }) });
  const session = await agent.open("one", { ...store, append });
  const begun = Date.now();
  const run = session.send("hi");
  const ended = run.result.catch(() => {});
  await waiting;
  isAbout((await agent.open("one", store)).dueAt(), begun + 50_000);
  run.abort();
  await ended;
});
