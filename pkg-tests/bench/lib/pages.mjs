// What needs a Chromium: the provider adapters in a page, and the time from import to the first answer there and in Node.
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { findChromium } from "../../../www/demo/chromium.mjs";
import { bundle, moduleFile, modulesIn } from "./bundles.mjs";
import { startServer } from "./servers.mjs";
import { ratios, summary } from "./statistics.mjs";

const folder = fileURLToPath(new URL("..", import.meta.url));
const FLOOR = "raw";

/** Deltas of an answer in a page. */
const COUNT = 20_000;

/** Runs before those that count. */
const WARM_UPS = 2;

/** The CPU of the page's main thread for a streamed answer. */
export async function measureProviderInPage({ rounds, isQuick, only }) {
  return withPages(async ({ browser, server, bundles }) => {
    const names = await bundled(join(folder, "adapters/provider"), join(bundles, "provider"), only);
    const results = [];
    for (const mode of ["packed", "events"]) {
      for (const api of ["openai", "anthropic"]) {
        const count = isQuick ? 200 : COUNT;
        const apiKey = `bench.${mode}.${count}.x`;
        const given = { api, count, apiKey, baseUrl: `${server}/${api}` };
        const pages = await Promise.all([...names.keys()].map((name) => openPage(browser, server, name, given)));
        const ready = pages.filter((page) => page !== undefined);
        for (let round = isQuick ? 0 : -WARM_UPS; round < rounds; round += 1) {
          for (const page of rotated(ready, Math.max(round, 0))) await page.run(round >= 0);
        }
        const title = `${api}, ${mode === "packed" ? "packed" : "one event a piece"}, Chromium`;
        results.push({ title, rows: rowsOf(ready, "µs a delta", 1000 / count) });
        await Promise.all(ready.map((page) => page.close()));
      }
    }
    return results;
  });
}

/** From `import` to the first answer of an agent, in a fresh process and in a fresh page, and the bytes of the bundle. */
export async function measureStartUp({ rounds, isQuick, only }) {
  return withPages(async ({ browser, server, bundles }) => {
    const sizes = await bundled(join(folder, "entries"), join(bundles, "entries"), only);
    let session = 0;
    const given = () => {
      session += 1;
      return { model: `${server}/openai`, apiKey: `bench.agent.1.start-${process.pid}-${session}` };
    };
    const inNode = async (name) => {
      const file = pathToFileURL(join(bundles, "entries", name, "index.js")).href;
      const script = `${startUp}; globalThis.AI_SDK_LOG_WARNINGS = false; console.log(await startUp(${JSON.stringify(file)}, ${JSON.stringify(given())})); process.exit()`;
      const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script]);
      return Number(stdout.trim().split("\n").at(-1));
    };
    const inPage = async (name) => {
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(server);
      const time = await page.evaluate(`(${startUp})("/entries/${name}/index.js", ${JSON.stringify(given())})`);
      await context.close();
      return time;
    };
    const results = [];
    for (const [title, measure] of [
      ["start-up, import to first answer, Node", inNode],
      ["start-up, import to first answer, Chromium", inPage],
    ]) {
      const entries = [...sizes.keys()].map((name) => ({ name, times: [], error: undefined }));
      for (let round = isQuick ? 0 : -1; round < rounds; round += 1) {
        for (const entry of rotated(entries, Math.max(round, 0)).filter(({ error }) => error === undefined)) {
          try {
            const time = await measure(entry.name);
            if (round >= 0) entry.times.push(time);
          } catch (error) {
            entry.error = error.message.split("\n").slice(0, 2).join(" ");
          }
        }
      }
      results.push({ title, rows: rowsOf(entries, "ms", 1) });
    }
    const raw = sizes.get(FLOOR);
    const rows = [...sizes].map(([name, bytes]) => {
      return {
        name,
        each: bytes / 1000,
        unit: "kB",
        ratio: { median: bytes / raw, low: bytes / raw, high: bytes / raw },
      };
    });
    return [...results, { title: "bundle of an agent with one provider, brotli", rows }];
  });
}

/** In the process or page that is measured: milliseconds. */
async function startUp(url, given) {
  const start = performance.now();
  const { first } = await import(url);
  await first(given);
  return performance.now() - start;
}

async function openPage(browser, server, name, given) {
  const context = await browser.newContext();
  const page = await context.newPage();
  const result = { name, times: [], error: undefined };
  await page.goto(server);
  const session = await context.newCDPSession(page);
  await session.send("Performance.enable");
  const busy = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find((metric) => metric.name === "TaskDuration").value * 1000;
  };
  const isAble = await page.evaluate(
    async ([url, given]) => {
      globalThis.AI_SDK_LOG_WARNINGS = false;
      globalThis.process ??= { env: {} };
      const { create, supports } = await import(url);
      if (supports && !supports.includes(given.api)) return false;
      globalThis.ask = await create(given);
      return true;
    },
    [`/provider/${name}/index.js`, given],
  );
  if (!isAble) return void (await context.close());
  const run = async (counts) => {
    if (result.error !== undefined) return;
    try {
      await page.evaluate(() => globalThis.gc());
      const before = await busy();
      const length = await page.evaluate(() => globalThis.ask());
      if (length < given.count * 6) throw new Error(`a text of ${length}`);
      if (counts) result.times.push((await busy()) - before);
    } catch (error) {
      result.error = error.message.split("\n")[0];
    }
  };
  return Object.assign(result, { run, close: () => context.close() });
}

/** Bundles all modules of a folder, and tells the bytes of each. */
async function bundled(from, to, only) {
  const names = (await modulesIn(from)).filter((name) => !only || name === FLOOR || only.includes(name));
  const sizes = new Map();
  for (const name of names) sizes.set(name, await bundle(moduleFile(from, name), join(to, name)));
  return sizes;
}

function rowsOf(measured, unit, factor) {
  const floor = measured.find(({ name }) => name === FLOOR);
  return measured.map(({ name, times, error }) => {
    if (error !== undefined || times.length === 0) return { name, error: error ?? "no run" };
    return { name, ratio: ratios(times, floor.times), each: summary(times).median * factor, unit };
  });
}

async function withPages(work) {
  const bundles = await mkdtemp(join(tmpdir(), "crablet-bench-"));
  const server = await startServer("model", { BUNDLES: bundles });
  const browser = await chromium.launch({
    executablePath: findChromium(),
    args: ["--no-sandbox", "--js-flags=--expose-gc"],
  });
  try {
    return await work({ browser, server: `http://127.0.0.1:${server.port}`, bundles });
  } finally {
    await browser.close();
    server.stop();
    await rm(bundles, { recursive: true, force: true });
  }
}

function rotated(list, by) {
  const at = by % list.length;
  return [...list.slice(at), ...list.slice(0, at)];
}
