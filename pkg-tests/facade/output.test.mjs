// Runs that end with an object: what comes out, what is asked for again, what comes while it is written.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, CrabletError, tool } from "crablet";
import { scriptedModel } from "crablet/test";
import { z } from "zod";
import { collect } from "./support.mjs";

const weather = z.object({ city: z.string(), degrees: z.number().optional() });

test("the output of a run is what the schema makes of the answer", async () => {
  const model = scriptedModel([['{"city":"Oslo",', '"degrees":-4}']]);
  const { output, text } = await new Agent({ model }).run("weather?", { output: weather });
  assert.deepEqual(output, { city: "Oslo", degrees: -4 });
  assert.equal(text, '{"city":"Oslo","degrees":-4}');
  assert.equal(model.requests[0].output.jsonSchema.type, "object");
});

test("the validator's own form is the result, and the event has the JSON", async () => {
  const schema = z.object({ day: z.iso.datetime().transform((day) => new Date(day)) });
  const jsonSchema = { type: "object", properties: { day: { type: "string" } }, required: ["day"] };
  const run = new Agent({ model: scriptedModel([['{"day":"2026-11-30T00:00:00Z"}']]) }).stream("when?", {
    output: { schema, jsonSchema },
  });
  const events = await collect(run);
  assert.deepEqual(events.at(-1).output, { day: "2026-11-30T00:00:00Z" });
  assert.equal((await run.result).output.day.getUTCFullYear(), 2026);
});

test("tools run first, and an answer that does not fit is asked for once more", async () => {
  const model = scriptedModel([
    [{ type: "tool-call", toolName: "look", input: {} }],
    ["It is cold."],
    ['```json\n{"city":"Oslo","degrees":"-4"}\n```'],
  ]);
  const look = tool({ description: "Looks.", input: { type: "object" }, execute: () => "cold" });
  const result = await new Agent({ model, tools: { look } }).run("weather?", { output: weather });
  assert.deepEqual(result.output, { city: "Oslo", degrees: -4 });
  assert.match(result.messages.at(-2).content[0].text, /not valid JSON/);
  assert.equal(result.messages.at(-2).origin, "nudge");
});

test("what the Standard Schema says goes to the model, and a second failure ends the run", async () => {
  const positive = weather.refine(({ degrees = 0 }) => degrees > 0, { message: "it must be warm", path: ["degrees"] });
  const model = scriptedModel([['{"city":"Oslo","degrees":-4}'], ['{"city":"Oslo","degrees":-5}']]);
  await assert.rejects(new Agent({ model }).run("weather?", { output: positive }), (error) => {
    assert.equal(error.kind, "protocol");
    assert.match(error.message, /degrees: it must be warm/);
    return CrabletError.is(error);
  });
  assert.match(model.requests[1].messages.at(-1).content[0].text, /it must be warm/);
});

test("a list or an enum is an output too", async () => {
  const model = scriptedModel([['{"value":["a","b"]}'], ['{"value":"yes"}']]);
  const agent = new Agent({ model });
  assert.deepEqual((await agent.run("list", { output: z.array(z.string()) })).output, ["a", "b"]);
  assert.equal((await agent.run("choose", { output: { enum: ["yes", "no"] } })).output, "yes");
  assert.deepEqual(model.requests[1].output.jsonSchema.properties, { value: { enum: ["yes", "no"] } });
});

test("partial objects grow, and none that was given changes", async () => {
  const text = '{"city":"Os\\u006co","places":[{"name":"Frogner"},{"name":"Sag\\"ene"}],"n":12,"ok":true,"none":null}';
  const model = scriptedModel([[...text]]);
  const shape = { type: "object", properties: {} };
  const run = new Agent({ model }).stream("weather?", { output: shape });
  const seen = [];
  const copies = [];
  for await (const partial of run.partialOutputStream) {
    seen.push(partial);
    copies.push(structuredClone(partial));
  }
  assert.deepEqual(seen, copies);
  assert.deepEqual(seen.at(-1), JSON.parse(text));
  assert.deepEqual(seen[0], {});
  assert.ok(seen.some((partial) => partial.city === "Os"));
  assert.ok(seen.some((partial) => partial.places?.length === 1 && partial.places[0].name === "Frog"));
  assert.ok(!seen.some(({ n }) => n === 1), "a number is there once it is whole");
  assert.deepEqual((await run.result).output, JSON.parse(text));
});

test("partial objects of a list are lists, a failed attempt and prose are left behind", async () => {
  const busy = new CrabletError({ kind: "overloaded", message: "busy" });
  let attempt = 0;
  const model = async function* () {
    attempt += 1;
    if (attempt === 1) {
      yield '{"value":["wrong';
      throw busy;
    }
    yield attempt === 2 ? "Hm." : '{"value":["right"]}';
  };
  const agent = new Agent({ model, retry: { baseDelayMs: 1 } });
  const partials = await collect(agent.stream("list", { output: z.array(z.string()) }).partialOutputStream);
  assert.deepEqual(partials, [["wrong"], ["right"]]);
});

test("partial objects need an output", () => {
  const run = new Agent({ model: scriptedModel([["hi"]]) }).stream("hi");
  assert.throws(() => run.partialOutputStream, { kind: "invalid-input" });
});

test("a schema that cannot be used is told before anything is sent", async () => {
  const model = scriptedModel([["{}"]]);
  const output = { type: "object", properties: { a: { $ref: "#/none" } } };
  await assert.rejects(new Agent({ model }).run("hi", { output }), { kind: "invalid-input" });
  assert.equal(model.requests.length, 0);
});

test("keywords that nobody checks are reported, those that a validator checks are not", async () => {
  const unchecked = async (output) => {
    const run = new Agent({ model: scriptedModel([['{"city":"oslo"}']]) }).stream("hi", { output });
    return (await collect(run)).filter(({ type }) => type === "schema-unchecked").map(({ keywords }) => keywords);
  };
  const city = { type: "string", pattern: "^[a-z]" };
  assert.deepEqual(await unchecked({ type: "object", properties: { city } }), [["/properties/city/pattern"]]);
  assert.deepEqual(await unchecked(z.object({ city: z.string().regex(/^[a-z]/) })), []);
});

test("a conversation is saved in the middle and another agent ends it with the object", async () => {
  const wipe = tool({ description: "Wipes.", input: { type: "object" }, needsApproval: true, execute: () => "done" });
  const call = [{ type: "tool-call", toolName: "wipe", callId: "c1", input: {} }];
  const session = new Agent({ model: scriptedModel([call]), tools: { wipe } }).session();
  const { stopReason } = await session.send("wipe it", { output: weather }).result;
  assert.equal(stopReason, "suspended");
  const saved = JSON.parse(JSON.stringify(session.toJSON()));
  const model = scriptedModel([["no object"], ['{"city":"Oslo"}']]);
  const restored = new Agent({ model, tools: { wipe } }).session(saved);
  restored.approve("c1");
  const { output } = await restored.resume({ output: weather }).result;
  assert.deepEqual(output, { city: "Oslo" });
  const plain = await restored.send("thanks").result.catch((error) => error);
  assert.equal(plain.output, undefined);
});

test("the next model answers when one fails for good", async () => {
  const failing = async function* () {
    yield "half an ans";
    throw new CrabletError({ kind: "overloaded", message: "busy" });
  };
  const answering = scriptedModel([["whole"]]);
  const agent = new Agent({ model: failing, fallbackModels: [answering], retry: false });
  const events = await collect(agent.stream("hi"));
  const retry = events.find(({ type }) => type === "step-retry");
  assert.equal(retry.error.kind, "overloaded");
  assert.equal(retry.model.wire, "function");
  assert.equal(events.at(-1).text, "whole");
});

test("a validator that changes its mind fails the run, which has its one end all the same", async () => {
  let asked = 0;
  const validate = (value) => {
    asked += 1;
    return asked > 1 ? { issues: [{ message: "on second thoughts no" }] } : { value };
  };
  const schema = { "~standard": { version: 1, vendor: "test", validate } };
  const session = new Agent({ model: scriptedModel(['{"n":1}', "and on"]) }).session();
  const run = session.send("go", { output: { schema, jsonSchema: { type: "object" } } });
  const seen = [];
  await assert.rejects(async () => {
    for await (const event of run) seen.push(event);
  }, /on second thoughts no/);
  const { type, stopReason, error } = seen.at(-1);
  assert.deepEqual([type, stopReason, error.kind], ["run-end", "error", "protocol"]);
  assert.equal((await session.send("go on").result).text, "and on");
});
