// What a run promises, on a scripted model: its events, its reader, its end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, CrabletError, readEvents, tool } from "crablet";
import { scriptedModel } from "crablet/test";
import { collect, endless, types } from "./support.mjs";

test("a run tells its events in order and ends with its result", async () => {
  const agent = new Agent({
    model: scriptedModel([["Hel", "lo", { type: "usage", inputTokens: 3, outputTokens: 2 }]]),
  });
  const run = agent.stream("hi");
  const events = await collect(run);
  assert.deepEqual(types(events), [
    "run-start",
    "message-added",
    "step-start",
    "text-start",
    "text-delta",
    "text-delta",
    "text-end",
    "step-end",
    "run-end",
  ]);
  const result = await run.result;
  assert.equal(result.text, "Hello");
  assert.equal(result.stopReason, "stop");
  assert.deepEqual(result.usage, { inputTokens: 3, outputTokens: 2 });
  assert.deepEqual(
    result.messages.map(({ role }) => role),
    ["user", "assistant"],
  );
  assert.deepEqual(structuredClone(events), events, "events are plain data");
});

test("text outside the basic plane arrives unit by unit as it was", async () => {
  const pieces = ["𝄞", "a🦀", "日", "é🏳️‍🌈", "z"];
  const events = await collect(new Agent({ model: scriptedModel([pieces]) }).stream("hi"));
  assert.deepEqual(
    events.filter(({ type }) => type === "text-delta").map(({ delta }) => delta),
    pieces,
  );
});

test("half of a surrogate pair becomes U+FFFD, and an escaped backslash stays", async () => {
  const model = scriptedModel([["ok"]]);
  await new Agent({ model, instructions: "\\ud83e is text" }).run("cut \ud83e here");
  assert.equal(model.requests[0].messages[0].content[0].text, "cut \ufffd here");
  assert.equal(model.requests[0].instructions, "\\ud83e is text");
});

test("aborting gives exactly the closing events and rejects with the reason", async () => {
  const controller = new AbortController();
  const reason = new Error("enough");
  const model = endless();
  const run = new Agent({ model }).stream("hi", { signal: controller.signal });
  const events = [];
  for await (const event of run) {
    events.push(event.type === "text-delta" ? "text-delta" : event.type);
    if (events.filter((type) => type === "text-delta").length === 3) controller.abort(reason);
  }
  assert.deepEqual(events.slice(-2), ["text-end", "run-end"]);
  assert.equal(events.filter((type) => type === "text-delta").length, 3, "nothing of the answer after the abort");
  await assert.rejects(run.result, (error) => error === reason);
  assert.equal(model.signals[0].aborted, true);
});

test("a signal that is aborted already starts nothing", async () => {
  const model = scriptedModel(["never"]);
  const reason = new Error("too late");
  await assert.rejects(
    new Agent({ model }).run("hi", { signal: AbortSignal.abort(reason) }),
    (error) => error === reason,
  );
  assert.deepEqual(await collect(new Agent({ model }).stream("hi", { signal: AbortSignal.abort(reason) })), []);
  assert.equal(model.requests.length, 0);
});

test("a run is aborted whatever the reason is", async () => {
  for (const reason of [Object.create(null), Symbol("s"), null, 0, { message: undefined }]) {
    const model = endless();
    const run = new Agent({ model }).stream("hi");
    for await (const event of run) if (event.type === "text-delta") run.abort(reason);
    await assert.rejects(run.result, (error) => error === reason);
    assert.equal(model.signals[0].aborted, true);
  }
});

test("leaving the loop aborts the run", async () => {
  const model = endless();
  const run = new Agent({ model }).stream("hi");
  for await (const event of run) if (event.type === "text-delta") break;
  assert.equal(model.signals[0].aborted, true, "at once");
  await assert.rejects(run.result, (error) => CrabletError.is(error) && error.kind === "aborted");
});

test("a thousand runs leave no listener on a shared signal", async () => {
  const { signal } = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args) => {
    listeners += 1;
    addEventListener.apply(signal, args);
  };
  signal.removeEventListener = (...args) => {
    listeners -= 1;
    removeEventListener.apply(signal, args);
  };
  const agent = new Agent({
    model: async function* () {
      yield "ok";
    },
  });
  for (let count = 0; count < 1000; count += 1) await agent.run("hi", { signal });
  assert.equal(listeners, 0);
});

test("a run that fails tells run-end, then throws", async () => {
  const agent = new Agent({ model: scriptedModel([new Error("no luck")]) });
  const run = agent.stream("hi");
  const seen = [];
  await assert.rejects(
    (async () => {
      for await (const event of run) seen.push(event);
    })(),
    (error) => CrabletError.is(error) && /no luck/.test(error.message),
  );
  assert.equal(seen.at(-1).type, "run-end");
  assert.match(seen.at(-1).error.message, /no luck/);
  await assert.rejects(run.result, /no luck/);
});

test("an ignored failure is no unhandled rejection", async () => {
  new Agent({ model: scriptedModel([new Error("nobody looks")]) }).stream("hi");
  await new Promise((resolve) => setTimeout(resolve, 20));
});

test("a run has one reader", async () => {
  const run = new Agent({ model: scriptedModel(["ok"]) }).stream("hi");
  const events = collect(run);
  assert.throws(
    () => run.textStream,
    (error) => error.kind === "invalid-input",
  );
  await events;
});

test("a loop that begins in the same turn as `result` sees every event", async () => {
  const run = new Agent({ model: scriptedModel(["ok"]) }).stream("hi");
  const { result } = run;
  const events = await collect(run);
  assert.equal(events[0].type, "run-start");
  assert.equal((await result).text, "ok");
});

test("calls of next() are answered in the order in which they were made", async () => {
  const run = new Agent({ model: scriptedModel([["a", "b", "c"]]) }).stream("hi");
  const iterator = run[Symbol.asyncIterator]();
  const order = [];
  const ask = () => iterator.next().then(({ value }) => order.push(value?.type));
  let third;
  const first = ask().then(() => (third = ask()));
  await Promise.all([first, ask()]);
  await third;
  for (let end = false; !end; ) {
    const { done, value } = await iterator.next();
    end = done;
    if (!done) order.push(value.type);
  }
  assert.deepEqual(order.slice(0, 4), ["run-start", "message-added", "step-start", "text-start"]);
  assert.equal(order.at(-1), "run-end");
});

test("a reader that stops reading pauses the model", async () => {
  const model = endless();
  const iterator = new Agent({ model }).stream("hi")[Symbol.asyncIterator]();
  while ((await iterator.next()).value.type !== "text-delta");
  const { length } = model.yielded;
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(model.yielded.length <= length + 1, `${model.yielded.length - length} pieces ahead`);
  await iterator.return();
});

test("textStream gives only the text", async () => {
  const run = new Agent({ model: scriptedModel([[{ type: "reasoning-delta", delta: "hm" }, "a", "b"]]) }).stream("hi");
  let text = "";
  for await (const piece of run.textStream) text += piece;
  assert.equal(text, "ab");
});

test("toResponse is read back by readEvents, event for event", async () => {
  const answers = [[{ type: "tool-call", toolName: "now", input: {} }], ["it is\n\nlate 🦀"]];
  const tools = { now: tool({ description: "n", input: { type: "object" }, execute: () => "12" }) };
  const response = new Agent({ model: scriptedModel(answers), tools }).stream("hi").toResponse({ status: 201 });
  assert.equal(response.status, 201);
  assert.match(response.headers.get("content-type"), /^text\/event-stream/);
  const events = await collect(readEvents(response));
  assert.equal(events[0].type, "run-start");
  assert.equal(events.at(-1).text, "it is\n\nlate 🦀");
});

test("cancelling the body of toResponse aborts the run", async () => {
  const model = endless();
  const response = new Agent({ model }).stream("hi").toResponse();
  const reader = response.body.getReader();
  await reader.read();
  await reader.cancel();
  assert.equal(model.signals[0]?.aborted ?? true, true);
});

test("readEvents reports a stream that is cut, and an answer that is none", async () => {
  const cut = new Response('data: {"type":"run-start","runId":"r","step":0}\n\ndata: {"ty');
  await assert.rejects(collect(readEvents(cut)), (error) => error.kind === "stream-truncated" && error.retryable);
  await assert.rejects(collect(readEvents(new Response("no", { status: 401 }))), (error) => error.kind === "auth");
});

test("a steered message is delivered before the next step", async () => {
  const model = scriptedModel([[{ type: "tool-call", toolName: "wait", input: {} }], "done"]);
  let run;
  const tools = {
    wait: tool({
      description: "w",
      input: { type: "object" },
      execute: () => {
        run.steer("and hurry");
        return "waited";
      },
    }),
  };
  run = new Agent({ model, tools }).stream("hi");
  const events = await collect(run);
  assert.ok(types(events).includes("steer-delivered"));
  assert.equal(model.requests[1].messages.at(-1).content[0].text, "and hurry");
  assert.throws(
    () => run.steer("more"),
    (error) => error.kind === "invalid-input",
  );
});

test("maxSteps of a run ends it with limit", async () => {
  const model = async function* () {
    yield { type: "tool-call", toolName: "again", input: {} };
  };
  const tools = { again: tool({ description: "a", input: { type: "object" }, execute: () => "again" }) };
  const { stopReason, steps } = await new Agent({ model, tools }).run("hi", { maxSteps: 2 });
  assert.equal(stopReason, "limit");
  assert.equal(steps.length, 2);
});

test("a long history is compacted beyond the threshold, and stays whole in the session", async () => {
  const model = scriptedModel(["one", "two", "three", "four"]);
  const compaction = { thresholdTokens: 500, keepTokens: 50 };
  const session = new Agent({ model, compaction }).session();
  const long = "words and more words ".repeat(60);
  for (const prompt of [long, long, long]) await session.send(prompt).result;
  const events = await collect(session.send("and now?"));
  assert.ok(types(events).includes("compaction-end"));
  assert.ok(model.requests[3].messages.length < 7);
  assert.equal(session.getState().messages.length, 8);
});

test("an agent without a model is refused where it is made", () => {
  assert.throws(
    () => new Agent({}),
    (error) => CrabletError.is(error) && error.kind === "invalid-input",
  );
});
