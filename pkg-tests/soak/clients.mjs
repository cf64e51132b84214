// The programs of the soak that use crablet: each can be started, asked what it needs now, and stopped.
//
// A client gives `sample()`: its memory in MiB and what it has open, by name, with what it counted so far; and `stop()`, after
// which it has closed all that it had open.
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { withPage } from "../lib/browser.mjs";
import { descendants, openFiles } from "../lib/process-tree.mjs";
import { serveFolder } from "../lib/servers.mjs";

const MIB = 2 ** 20;

/** How long a client may take until everything it does is over, in milliseconds. */
const STOP_LIMIT = 60_000;

/** Node with the packed package. */
export async function startNode(project, given) {
  // Node has a WebSocket of its own from 22 on, and before behind a flag.
  const flags = ["--expose-gc", ...(globalThis.WebSocket === undefined ? ["--experimental-websocket"] : [])];
  const child = fork(join(project.tests, "soak/node-client.mjs"), [], { execArgv: flags });
  const ended = once(child, "exit").then(([code, signal]) => {
    throw new Error(`the client in Node ended: ${signal ?? code}`);
  });
  ended.catch(() => {});
  const waiting = new Map();
  child.on("message", ({ id, gave, failed }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (failed === undefined) resolve(gave);
    else reject(new Error(failed));
  });
  let last = 0;
  const ask = (action, given) => {
    last += 1;
    const answer = new Promise((resolve, reject) => waiting.set(last, { resolve, reject }));
    child.send({ id: last, do: action, given });
    return Promise.race([answer, ended]);
  };
  await ask("start", given);
  return {
    async sample() {
      const { heap, external, module, ...told } = await ask("sample");
      const [{ memory }] = descendants(child.pid);
      const { files } = openFiles(child.pid);
      const values = { RSS: memory, heap: heap / MIB, external: external / MIB, module: module / MIB, files };
      return { values, ...told };
    },
    stop: () => within(STOP_LIMIT, ask("stop"), "the client in Node"),
    kill: () => child.kill("SIGKILL"),
  };
}

/** A page in Chromium with the packed package. `placesFor` gives its origin the tokens that it needs. */
export async function startPage(project, placesFor, given) {
  const site = await serveFolder(project.folder);
  const places = await placesFor(site.url);
  let end = () => {};
  const over = new Promise((resolve) => {
    end = resolve;
  });
  const opened = new Promise((resolve, reject) => {
    withPage(async (tab) => {
      resolve(tab);
      await over;
    })
      .catch(reject)
      .finally(() => site.stop());
  });
  const tab = await opened;
  await tab.goto(`${site.url}/pkg-tests/soak/page.html`);
  await tab.waitForFunction(() => window.soak !== undefined);
  const session = await tab.context().newCDPSession(tab);
  await session.send("Performance.enable");
  await tab.evaluate((given) => window.soak.start(given), { ...given, ...places });
  return {
    async sample() {
      await session.send("HeapProfiler.collectGarbage");
      const { metrics } = await session.send("Performance.getMetrics");
      const metric = (wanted) => metrics.find(({ name }) => name === wanted).value;
      const { module, ...told } = await tab.evaluate(() => window.soak.sample());
      const values = { heap: metric("JSHeapUsedSize") / MIB, module: module / MIB, nodes: metric("Nodes") };
      return { values, ...told };
    },
    stop: () =>
      within(
        STOP_LIMIT,
        tab.evaluate(() => window.soak.stop()),
        "the page",
      ),
    kill: () => end(),
  };
}

/** The crate. */
export async function startNative(binary, given) {
  const child = spawn(binary, [], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit");
  let told = { counts: {}, errors: [] };
  createInterface({ input: child.stdout }).on("line", (line) => {
    told = JSON.parse(line);
  });
  child.stdin.write(`${JSON.stringify(given)}\n`);
  return {
    async sample() {
      const [process] = descendants(child.pid);
      if (process === undefined) throw new Error(`the native client ended: ${child.exitCode ?? child.signalCode}`);
      return { values: { RSS: process.memory, files: openFiles(child.pid).files }, ...told };
    },
    async stop() {
      child.stdin.end("\n");
      const [code, signal] = await within(STOP_LIMIT, ended, "the native client");
      if (code !== 0) throw new Error(`the native client ended: ${signal ?? code}`);
      return told;
    },
    kill: () => child.kill("SIGKILL"),
  };
}

async function within(limit, promise, who) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${who} does not come to an end within ${limit / 1000} s`)), limit);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
