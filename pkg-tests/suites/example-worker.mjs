// The example worker in workerd, with two browsers that watch one conversation while the Durable Object behind it is evicted, its
// runtime is killed, and nobody is there.
import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isAccessible } from "../lib/accessible.mjs";
import { withPage } from "../lib/browser.mjs";
import { buildExampleWorker, KEY, PASSWORD, serveExampleWorker } from "../lib/example-worker.mjs";
import { startLedgerServer } from "../lib/ledger-server.mjs";
import { freePort } from "../lib/process.mjs";
import { startSteppingModel } from "../lib/stepping-model.mjs";

const STEPS = 4;

export default async function exampleWorker(project) {
  const home = await buildExampleWorker(project);
  const { readEvents } = await import(pathToFileURL(join(project.folder, "node_modules/crablet/index.js")).href);
  await streams(home, readEvents);
  await withPage((tab) => watchedByTwo(home, tab));
  return `an answer streamed; ${STEPS} steps watched by two browsers over an eviction and three kills, each done at most once`;
}

/** The endpoint for one question. */
async function streams(home, readEvents) {
  const model = await startSteppingModel({ steps: 1, tool: "current_time", held: false });
  try {
    const server = await serveExampleWorker(home, { MODEL_URL: model.url });
    await asks(server, model, readEvents).finally(server.stop);
  } finally {
    await model.stop();
  }
}

async function asks(server, model, readEvents) {
  const ask = (headers) => fetch(`${server.url}/ask`, { method: "POST", body: "What time is it?", headers });
  assert.equal((await ask({})).status, 401);
  assert.equal((await ask({ authorization: "Bearer wrong" })).status, 401);
  const response = await ask({ authorization: `Bearer ${PASSWORD}` });
  const events = [];
  for await (const event of readEvents(response)) events.push(event);
  assert.match(events.at(-1).text, /^All is done: "?\d{4}-\d\d-\d\dT/);
  assert.deepEqual([...model.keys], [`Bearer ${KEY}`]);
  assert.equal(JSON.stringify(events).includes(KEY), false);
}

async function watchedByTwo(home, tab) {
  const model = await startSteppingModel({ steps: STEPS, tool: "tools__step" });
  const ledger = await startLedgerServer();
  const port = await freePort();
  const start = () => serveExampleWorker(home, { MODEL_URL: model.url, MCP_URL: ledger.url }, { port });
  let server;
  const restart = async () => {
    await server.kill();
    server = await start();
  };
  const other = await tab.context().newPage();
  try {
    server = await start();
    await enter(tab, server);
    const watch = () => both(tab, other, (page) => page.goto(`${server.url}/?chat=steps`));
    await watch();
    await tab.getByLabel("Message").fill("Do all steps.");
    await tab.getByRole("button", { name: "Send" }).click();

    // Killed in the middle of an answer, with nobody there: the alarm goes on.
    await both(tab, other, (page) => page.getByText("Now step 1.", { exact: true }).waitFor());
    await both(tab, other, (page) => page.goto("about:blank"));
    await restart();
    await model.asked(1, 2);
    await watch();
    await decided(1, other);

    // Killed in the middle of an answer: the browsers come back, and so does the run.
    await both(tab, other, (page) => page.getByText("Now step 2.", { exact: true }).waitFor());
    await restart();
    await model.asked(2, 2);
    await decided(2, tab);

    // Evicted while a person is asked: the decision starts it.
    model.release(3);
    await both(tab, other, (page) => page.getByRole("button", { name: "Allow" }).waitFor());
    await isAccessible(tab, "worker-question");
    let sockets = 0;
    tab.on("websocket", () => {
      sockets += 1;
    });
    await server.evict("steps");
    await decided(3, other);
    await tab.getByText("Now step 4.", { exact: true }).waitFor();
    assert.equal(sockets, 0);

    // Killed while a tool is at work, whose result nobody can claim: it is not done again, and the model is told.
    model.release(4);
    await tab.getByRole("button", { name: "Allow" }).click();
    await ledger.written(4);
    await restart();
    model.release(5);
    const right = /^All is done: step 1 is done, step 2 is done, step 3 is done, .*interrupted/;
    await both(tab, other, (page) => page.getByText(right).waitFor());
    assert.deepEqual(ledger.ledger, [1, 2, 3, 4]);
    await isAccessible(tab, "worker-answer");
  } catch (error) {
    const shown = await tab.evaluate(() => document.querySelector("main").textContent).catch(String);
    throw new Error(`${error.message}\nthe page shows:\n${shown}\nworkerd said:\n${server?.output()}`, {
      cause: error,
    });
  } finally {
    await server?.stop();
    await ledger.stop();
    await model.stop();
  }

  /** Lets the model call the tool of a step, has one of the browsers allow it, and lets it end. */
  async function decided(step, page) {
    model.release(step);
    await both(tab, other, (either) => either.getByRole("button", { name: "Allow" }).waitFor());
    await page.getByRole("button", { name: "Allow" }).click();
    await ledger.written(step);
    ledger.release(step);
    await model.asked(step + 1);
  }
}

async function enter(page, server) {
  await page.goto(server.url);
  await isAccessible(page, "worker-entrance");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Enter" }).click();
  await page.getByLabel("Message").waitFor();
}

const both = (one, other, act) => Promise.all([act(one), act(other)]);
