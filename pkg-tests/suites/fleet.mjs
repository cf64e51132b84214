// The example worker as a fleet: many conversations, each in an object of its own, whose runtime is killed again and again; their
// alarms; what their browsers are told; and conversations that move, from object to object, to a browser and back.
import assert from "node:assert/strict";
import { withPage } from "../lib/browser.mjs";
import { watcherOf } from "../lib/chat-watcher.mjs";
import { buildExampleWorker, KEY, PASSWORD, serveExampleWorker, serveInMiniflare } from "../lib/example-worker.mjs";
import { startLedgerServer } from "../lib/ledger-server.mjs";
import { newerNode } from "../lib/newer-node.mjs";
import { freePort } from "../lib/process.mjs";
import { listen } from "../lib/servers.mjs";
import { startSteppingModel } from "../lib/stepping-model.mjs";

const CHATS = 50;
const STEPS = 4;

/** How long what is looked for again and again may take, in milliseconds. */
const LIMIT = 120_000;

export default async function fleet(project) {
  const home = await buildExampleWorker(project);
  await withPage(async (tab) => {
    await manyAreKilled(home, tab);
    await movesAreCutOff(home, tab);
    await browsersContinue(home, tab);
    await timeGoesOn(home, tab);
    await aBrowserWorks(home, tab);
    await itWorksInMiniflare(project, home, tab);
  });
  return `${CHATS} conversations over three kills by alarm alone; moves cut off; alarms for questions, retries and what is old; a browser that works by itself; the same in miniflare`;
}

/** Kills the runtime in the middle of many runs. Nobody watches: what goes on, goes on by alarms. */
async function manyAreKilled(home, tab) {
  const names = Array.from({ length: CHATS }, (_, index) => `c${index + 1}`);
  await withFreeWorker(home, tab, { disk: "many" }, async ({ worker, watcher, ledger }) => {
    await beginAll(watcher, names);
    await ledger.counted(CHATS / 2);
    await tab.goto("about:blank");
    for (const count of [CHATS, 2 * CHATS, 3 * CHATS]) {
      await ledger.counted(count);
      await worker.restart();
    }
    await everyChatIs(worker, names, "idle");
    await endedRight(worker, tab, names, ledger.ledger);
    await isPaged(worker, names);
  });
}

/** Moves conversations that are at work to other objects, and kills the runtime while they are on their way. */
async function movesAreCutOff(home, tab) {
  const names = ["m1", "m2", "m3", "m4", "m5", "m6"];
  let moved = 0;
  await withFreeWorker(home, tab, { disk: "moves" }, async ({ worker, watcher, ledger }) => {
    await beginAll(watcher, names);
    for (const count of [names.length / 2, names.length, 2 * names.length]) {
      await ledger.counted(count);
      const moves = names.map((name) => worker.ask(`/chats/${name}/move`, { method: "POST", body: "{}" }));
      await Promise.any(moves);
      await worker.restart();
      // The others were cut off, wherever they were.
      moved += (await Promise.allSettled(moves)).filter(({ value }) => value?.ok).length;
    }
    await everyChatIs(worker, names, "idle");
    await endedRight(worker, tab, names, ledger.ledger);
    assert.ok(moved > 0, "some moves came to their end");
  });
}

/** What browsers are told after their conversation rested, moved, or was out of reach. */
async function browsersContinue(home, tab) {
  await withFreeWorker(home, tab, { disk: "continue", asks: "yes" }, async ({ worker, watcher }) => {
    await watcher.watch("one");
    await watcher.until("one", { status: "idle" });
    await watcher.ask("one", { type: "send", text: "1" });
    const decide = async (callId) => {
      await watcher.until("one", { pending: 1 });
      await watcher.ask("one", { type: "decide", callId, allow: true });
      await watcher.until("one", { pending: 0 });
    };
    for (const step of [1, 2]) await decide(`call-${step}`);

    // It rests, while its browsers stay: a decision wakes it, and only what is new comes.
    await watcher.until("one", { pending: 1 });
    await worker.evict("one");
    const rested = await watcher.seen("one");
    await decide("call-3");
    await watcher.until("one", { pending: 1 });
    const woken = await watcher.seen("one");
    assert.equal(woken.opened, 1, "the WebSocket stayed");
    assert.ok(rested.messages.length > 4);
    const [first] = woken.updates.slice(rested.updates.length);
    assert.equal(first.from, rested.messages.length - 4, "not all is told again");
    const inShort = ({ role, content }) => `${role}: ${content.map(({ type, text }) => text ?? type)}`;
    assert.deepEqual(woken.messages.slice(0, rested.messages.length).map(inShort), rested.messages.map(inShort));

    // It moves while a person is asked: the browsers come after it and continue.
    const moved = await worker.ask("/chats/one/move", { method: "POST", body: "{}" });
    assert.match((await moved.json()).object, /^[0-9a-f]{64}$/);
    await watcher.until("one", { opened: 2 });
    await decide("call-4");
    await watcher.until("one", { status: "idle", text: "All is done" });
    const after = await watcher.seen("one");
    assert.equal(after.opened, 2);
    const again = after.updates.slice(woken.updates.length).find(({ from }) => from !== undefined);
    assert.ok(again.from >= woken.messages.length - 4, "not all is told again");
    assert.deepEqual(
      after.messages.map(({ role }) => role),
      ["user", ...Array(STEPS).fill(["assistant", "tool"]).flat(), "assistant"],
    );
  });
}

/** What is to happen later happens although the runtime is killed before, and although nobody is there. */
async function timeGoesOn(home, tab) {
  // A question to a person is over.
  const limits = { APPROVAL_SECONDS: "1", FORGET_AFTER_SECONDS: "1" };
  await withFreeWorker(home, tab, { disk: "time", asks: "yes", steps: 1, limits }, async (all) => {
    const { worker, watcher, ledger, model } = all;
    await watcher.watch("late");
    await watcher.until("late", { status: "idle" });
    await watcher.ask("late", { type: "send", text: "1" });
    await watcher.until("late", { pending: 1 });
    await tab.goto("about:blank");
    await worker.restart();
    await model.asked(2);
    // And then the conversation itself is old.
    await until("the list is empty", async () => (await listOf(worker)).length === 0);
    await worker.open();
    await watcher.watch("late");
    await watcher.until("late", { status: "idle" });
    assert.deepEqual((await watcher.seen("late")).messages, []);
    assert.deepEqual(ledger.ledger, []);
  });

  // A model that is out of reach is asked again, whatever happens while it is waited for.
  const asked = [];
  const model = await listen((_request, response) => {
    asked.push(response);
    if (asked.length === 1)
      return response.writeHead(503, { "retry-after": "2", "content-type": "application/json" }).end("{}");
    response.writeHead(200, { "content-type": "text/event-stream" });
    const choices = [{ index: 0, delta: { role: "assistant", content: "at last" }, finish_reason: "stop" }];
    response.end(`data: ${JSON.stringify({ id: "1", choices })}\n\ndata: [DONE]\n\n`);
  });
  await withWorker(home, tab, { MODEL_URL: model.url }, "retry", async ({ worker, watcher }) => {
    await watcher.watch("retry");
    await watcher.until("retry", { status: "idle" });
    await watcher.ask("retry", { type: "send", text: "hello" });
    await until("the model was asked", () => asked.length === 1);
    await tab.goto("about:blank");
    await worker.restart();
    await everyChatIs(worker, ["retry"], "idle");
    assert.equal(asked.length, 2);
  }).finally(model.stop);
}

/** A browser works on the conversation by itself: it gives it back, dies with it, loses it to another. */
async function aBrowserWorks(home, tab) {
  const model = await startSteppingModel({ steps: STEPS, tool: "tools__step" });
  const ledger = await startLedgerServer();
  const bindings = { MODEL_URL: model.url, MCP_URL: ledger.url, LEASE_SECONDS: "2" };
  const act = async ({ worker }) => {
    const pages = await Promise.all([0, 1, 2].map(() => tab.context().newPage()));
    const [one, other, third] = pages;
    for (const page of pages) await page.goto(`${worker.url()}/?chat=trip`);
    const press = (page, name) => page.getByRole("button", { name, exact: true }).click();
    const sees = (page, text) => page.getByText(text, { exact: true }).waitFor();
    await one.getByLabel("Message").fill("Do all steps.");
    await press(one, "Send");
    await Promise.all(pages.map((page) => sees(page, "Now step 1.")));

    // Taken in the middle of an answer: the browser asks the model itself, by way of the worker, which has the key.
    await press(one, "Work on it here");
    await model.asked(1, 2);
    await sees(other, "A browser works on it.");
    model.release(1);
    await press(one, "Allow");
    await ledger.written(1);
    ledger.release(1);
    await model.asked(2);
    // What it has saved, the others see.
    await sees(other, "done");

    // Given back in the middle of an answer.
    await press(one, "Give it back");
    await model.asked(2, 2);
    model.release(2);
    await press(other, "Allow");
    await ledger.written(2);
    ledger.release(2);
    await model.asked(3);

    // A browser that is closed while a tool is at work: when its lease is over the object goes on, and does not do it again.
    await press(one, "Work on it here");
    await model.asked(3, 2);
    model.release(3);
    await press(one, "Allow");
    await ledger.written(3);
    await one.close();
    await model.asked(4);

    // Taken back by another while it asks its user: the question is open there, and only there.
    await press(other, "Work on it here");
    await model.asked(4, 2);
    model.release(4);
    await other.getByRole("button", { name: "Allow" }).waitFor();
    await press(third, "Take it back");
    await press(third, "Allow");
    await ledger.written(4);
    ledger.release(4);
    model.release(5);
    const right = /^All is done: step 1 is done, step 2 is done, .*interrupted.*, step 4 is done/;
    await Promise.all([other, third].map((page) => page.getByText(right).waitFor()));
    assert.deepEqual(ledger.ledger, [1, 2, 3, 4]);
    assert.deepEqual([...model.keys], [`Bearer ${KEY}`]);
    // The key was not in anything that a page was given.
    for (const page of [other, third]) assert.equal((await page.content()).includes(KEY), false);
  };
  try {
    await withWorker(home, tab, bindings, "browser", act);
  } finally {
    await ledger.stop();
    await model.stop();
  }
}

/** As a developer tries it, with `wrangler dev`, which wants Node 22: it is killed there, too. */
async function itWorksInMiniflare(project, home, tab) {
  const names = ["d1", "d2", "d3"];
  const program = newerNode(22);
  const serve = (_home, bindings, place) => serveInMiniflare(project, home, bindings, place, program);
  await withFreeWorker(home, tab, { disk: "miniflare", serve }, async ({ worker, watcher, ledger }) => {
    await beginAll(watcher, names);
    await ledger.counted(names.length);
    await tab.goto("about:blank");
    await worker.restart();
    await everyChatIs(worker, names, "idle");
    await endedRight(worker, tab, names, ledger.ledger);
  });
}

async function beginAll(watcher, names) {
  for (const name of names) await watcher.watch(name);
  await Promise.all(names.map((name) => watcher.until(name, { status: "idle" })));
  for (const name of names) await watcher.ask(name, { type: "send", text: name.slice(1) });
}

/** A worker whose model and tools do not wait for the test. */
async function withFreeWorker(home, tab, { disk, asks = "no", steps = STEPS, limits = {}, serve }, use) {
  // Each conversation is asked with its number, so that each step of each has a number of its own.
  const input = (step, prompt) => ({ n: Number(prompt) * 100 + step });
  const model = await startSteppingModel({ steps, tool: "tools__step", input, held: false });
  const ledger = await startLedgerServer({ delay: 100 });
  const bindings = { MODEL_URL: model.url, MCP_URL: ledger.url, MCP_ASKS: asks, ...limits };
  try {
    await withWorker(home, tab, bindings, disk, (all) => use({ ...all, ledger, model }), serve);
  } finally {
    await ledger.stop();
    await model.stop();
  }
}

async function withWorker(home, tab, bindings, disk, use, serve = serveExampleWorker) {
  const port = await freePort();
  const start = () => serve(home, bindings, { port, disk });
  let server = await start();
  const watcher = {};
  const open = async () => {
    await tab.goto(server.url);
    if (await tab.getByLabel("Password").isVisible()) {
      await tab.getByLabel("Password").fill(PASSWORD);
      await tab.getByRole("button", { name: "Enter" }).click();
      await tab.getByLabel("Message").waitFor();
    }
    Object.assign(watcher, await watcherOf(tab));
  };
  const worker = {
    url: () => server.url,
    ask: (path, options) => server.ask(path, options),
    evict: (chat) => server.evict(chat),
    open,
    restart: async () => {
      await server.kill();
      server = await start();
    },
  };
  try {
    await open();
    await within(use({ worker, watcher }));
  } catch (error) {
    throw new Error(`${disk}: ${error.message}\nworkerd said:\n${server.output()}`, { cause: error });
  } finally {
    await tab.goto("about:blank");
    await server.stop();
  }
}

/** Fails when a part does not come to its end. */
async function within(promise) {
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${LIMIT / 1000} s`)), LIMIT);
  });
  await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function listOf(worker, query = "") {
  return (await (await worker.ask(`/chats${query}`)).json()).chats;
}

/** Resolves when the list says so of all. */
async function everyChatIs(worker, names, status) {
  let last;
  await until(
    () => `all conversations are ${status}; the list has ${JSON.stringify(last)}`,
    async () => {
      last = (await listOf(worker)).map((chat) => [chat.name, chat.status]);
      return last.length === names.length && last.every(([, told]) => told === status);
    },
  );
}

/** Each conversation has its end, each of its calls one result, and what a result says to be done was done once. */
async function endedRight(worker, tab, names, ledger) {
  assert.equal(new Set(ledger).size, ledger.length, "no tool was done twice");
  await worker.open();
  const watcher = await watcherOf(tab);
  for (const name of names) {
    await watcher.watch(name);
    await watcher.until(name, { status: "idle", text: "All is done" });
    const { messages } = await watcher.seen(name);
    const results = messages.filter(({ role }) => role === "tool").flatMap(({ content }) => content);
    assert.equal(results.length, STEPS, name);
    for (const [index, { callId, isError, content }] of results.entries()) {
      assert.equal(callId, `call-${index + 1}`);
      const step = Number(name.slice(1)) * 100 + index + 1;
      if (isError) assert.match(content[0].text, /interrupted/);
      else assert.deepEqual([content[0].text, ledger.includes(step)], [`step ${step} is done`, true]);
    }
  }
}

/** The list comes in pages, the latest first. */
async function isPaged(worker, names) {
  const found = [];
  for (let after; ; ) {
    const query = after === undefined ? "?limit=20" : `?limit=20&after=${encodeURIComponent(after)}`;
    const { chats, next } = await (await worker.ask(`/chats${query}`)).json();
    assert.ok(chats.length <= 20);
    found.push(...chats);
    if (next === undefined) break;
    after = next;
  }
  assert.deepEqual(found.map(({ name }) => name).sort(), [...names].sort());
  assert.deepEqual(
    found.map(({ at }) => at),
    found.map(({ at }) => at).sort((one, other) => other - one),
  );
}

/** Looks again and again, at what tells nobody of its changes. */
async function until(what, look) {
  const end = Date.now() + LIMIT;
  while (!(await look())) {
    if (Date.now() > end) throw new Error(`not within ${LIMIT / 1000} s: ${typeof what === "string" ? what : what()}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
