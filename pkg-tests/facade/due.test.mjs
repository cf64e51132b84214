// When a session that nothing works on has something to do, for places that are started at a time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, subAgent, tool } from "crablet";
import { scriptedModel } from "crablet/test";

const pay = (needsApproval) =>
  tool({ description: "Pays.", input: { type: "object" }, needsApproval, execute: () => "paid" });
const call = { type: "tool-call", callId: "1", toolName: "pay", input: {} };
const isAbout = (time, wanted) => assert.ok(Math.abs(time - wanted) < 60_000, `${time} is not about ${wanted}`);

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
