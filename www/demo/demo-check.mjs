// `make demo-check`: starts the demo as a user would, drives the page in a real Chromium, and says what holds.
//
//   node demo-check.mjs [SUITE…]   only these suites of checks.mjs, such as: tools lostShim
//
//   CHROMIUM   the browser's path (default: the Chromium or Chrome on PATH)
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { findChromium, QUIET } from "./chromium.mjs";
import { Demo } from "./demo-process.mjs";
import { Playground } from "./playground.mjs";
import { suites } from "./checks.mjs";

const screenshotFolder = join(dirname(fileURLToPath(import.meta.url)), "../../dist/screenshots");

/** The longest one check may take, in milliseconds: the slowest waits for three retries with back-off. */
const CHECK_LIMIT = 60_000;

let passed = 0;
let failed = 0;

/** Runs one check and prints its line. */
async function check(name, body) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${CHECK_LIMIT / 1_000} seconds`)), CHECK_LIMIT);
  });
  try {
    await Promise.race([body(), limit]);
    passed += 1;
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n        ${String(error.message).split("\n").slice(0, 12).join("\n        ")}`);
  } finally {
    clearTimeout(timer);
  }
}

async function main() {
  await rm(screenshotFolder, { recursive: true, force: true });
  await mkdir(screenshotFolder, { recursive: true });
  const demo = await Demo.start();
  const profile = await mkdtemp(join(tmpdir(), "crablet-chromium-"));
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath: findChromium(),
    headless: true,
    // A machine that builds at the same time can take long to start a browser.
    timeout: 120_000,
    viewport: { width: 1280, height: 800 },
    args: [...QUIET, "--no-sandbox"],
  });
  try {
    const playground = await Playground.open(browser, demo.pageAddress);
    const wanted = process.argv.slice(2);
    const chosen = suites.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
    for (const suite of chosen) await suite({ check, demo, playground, screenshotFolder });
  } finally {
    await browser.close();
    await rm(profile, { recursive: true, force: true });
    await demo.kill();
  }
}

try {
  await main();
} catch (error) {
  failed += 1;
  console.log(`FAILED  the demo itself\n        ${error.stack}`);
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
