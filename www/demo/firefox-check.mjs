// Starts the demo, drives the page's main flows in a real Firefox, and says what holds. `make demo-check` does all of them, in Chromium.
//
//   FIREFOX   the browser's path (default: the Firefox on PATH)
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withFirefoxPage } from "../../pkg-tests/lib/firefox.mjs";
import { startOAuthServers } from "../../pkg-tests/lib/oauth-servers.mjs";
import { Demo } from "./demo-process.mjs";
import { startEverything } from "./everything.mjs";
import { random, surprise } from "./surprises.mjs";

const screenshotFolder = join(dirname(fileURLToPath(import.meta.url)), "../../dist/screenshots");

/** The longest that anything is waited for, in milliseconds. */
const LIMIT = 30_000;

/** The page, as far as these flows use it. */
class Page {
  constructor(tab) {
    this.tab = tab;
    tab.setDefaultTimeout(LIMIT);
  }

  async press(name) {
    await this.tab.locator(`aria/${name}[role="button"]`).click();
  }

  async choose(name) {
    await this.tab.locator(`aria/${name}[role="tab"]`).click();
  }

  async fill(selector, text) {
    await this.tab.locator(selector).fill(text);
  }

  async send(prompt) {
    await this.fill("#prompt", prompt);
    await this.tab.locator("#prompt").wait();
    await this.tab.focus("#prompt");
    await this.tab.keyboard.press("Enter");
  }

  /** Waits for an element that holds a text. */
  async sees(selector, text = "") {
    await this.tab.waitForFunction(
      (wanted, words) => [...document.querySelectorAll(wanted)].some((found) => found.textContent.includes(words)),
      {},
      selector,
      text,
    );
  }

  /** Waits until nothing runs. */
  async answered() {
    await this.tab.waitForFunction(() => document.querySelector('button[aria-label="Stop"]') === null);
  }
}

/** What must hold, in order: each flow begins where the one before it ended. */
const flows = {
  "a real tool is called through the shim, and its answer streams": async (page, demo) => {
    await page.sees('.server[data-server="files"][data-state="ready"]');
    const { name, content } = await surprise(demo);
    await page.send(`Read ${name}`);
    await page.sees(".markdown", content);
    await page.sees('.tool-card[data-status="ok"]');
    await page.answered();
  },
  "abort in the middle of a stream ends it, and the next prompt works": async (page) => {
    await page.send("Count to 2000");
    await page.sees(".markdown", "20, 21");
    await page.press("Stop");
    await page.answered();
    await page.send("Count to 3");
    await page.sees(".markdown", "1, 2, 3");
    await page.answered();
  },
  "an error is told where the answer would be": async (page, demo) => {
    await page.fill("#model", "bad-key");
    await page.send("Hello there");
    await page.sees('.error-card[data-error="auth"]');
    await page.answered();
    await page.fill("#model", "scripted-demo");
    assert.match(demo.modelUrl, /^http:/);
  },
  "a server over HTTP is added, and a person allows its tool": async (page) => {
    const everything = await startEverything();
    try {
      await page.press("Add");
      await page.fill("#server-name", "everything");
      await page.fill("#server-url", everything.url);
      await page.press("Connect");
      await page.sees('.server[data-server="everything"][data-state="ready"]');
      await page.tab.locator(".check ::-p-text(Ask me before each tool call)").click();
      const word = random();
      await page.send(`Echo "${word}" please`);
      await page.press("Allow");
      await page.sees(".markdown", `Echo: ${word}`);
      await page.answered();
      await page.tab.locator(".check ::-p-text(Ask me before each tool call)").click();
      await page.press("Remove everything");
    } finally {
      await everything.stop();
    }
  },
  "a person signs in to a server in a window of its own": async (page) => {
    const servers = await startOAuthServers({ page: true });
    try {
      await page.press("Add");
      await page.fill("#server-name", "members");
      await page.fill("#server-url", servers.url);
      const opened = new Promise((resolve) => page.tab.once("popup", resolve));
      await page.press("Connect");
      const window = await opened;
      await window.locator("#allow").click();
      await page.sees('.server[data-server="members"][data-state="ready"]');
      await page.press("Remove members");
    } finally {
      await servers.stop();
    }
  },
  "the inspector shows the time, the requests and the messages": async (page) => {
    await page.choose("Inspector");
    await page.sees(".waterfall .span-label", "model");
    await page.sees(".exchanges summary", "/v1/chat/completions");
    await page.sees(".tree summary", "Count to 3");
    await page.tab.screenshot({ path: join(screenshotFolder, "inspector-firefox.png") });
    await page.choose("Connection");
  },
  "a run that a reload interrupts is taken up again": async (page) => {
    await page.press("New conversation");
    await page.tab.locator(".check ::-p-text(Keep for this browser session)").click();
    await page.send("Count to 300");
    await page.sees(".markdown", "20, 21");
    await page.tab.reload();
    await page.press("Go on");
    await page.sees(".markdown", "299, 300");
  },
};

let passed = 0;
let failed = 0;
const demo = await Demo.start();
try {
  await mkdir(screenshotFolder, { recursive: true });
  await withFirefoxPage(async (tab) => {
    const page = new Page(tab);
    await tab.setViewport({ width: 1280, height: 800 });
    await tab.goto(demo.pageAddress);
    for (const [name, flow] of Object.entries(flows)) {
      await flow(page, demo);
      passed += 1;
      console.log(`ok      ${name}`);
    }
  });
} catch (error) {
  failed += 1;
  console.log(`FAILED  ${Object.keys(flows)[passed] ?? "the page as a whole"}\n        ${error.stack}`);
} finally {
  await demo.kill();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
