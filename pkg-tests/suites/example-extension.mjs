// The example extension, really loaded in Chromium. Its service worker is stopped twenty times during a run of ten steps:
// while the model speaks, while a tool of a local MCP server is at work, and while a person is asked.
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startShim } from "../../www/demo/shim.mjs";
import { isAccessible } from "../lib/accessible.mjs";
import { withBareChromium } from "../lib/bare-chromium.mjs";
import { withPage } from "../lib/browser.mjs";
import { copyExample } from "../lib/example.mjs";
import { run } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";
import { serveFolder } from "../lib/servers.mjs";
import { startSteppingModel } from "../lib/stepping-model.mjs";

const STEPS = 10;
const KEY = "sk-only-for-the-model";

/** The step at which the worker is stopped while the question is open. */
const ASKED_STEP = 5;

export default async function exampleExtension(project) {
  await run("cargo", ["build", "--quiet", "-p", "crablet-shim"], { cwd: repository, timeout: 600_000 });
  const { folder, run: runIn } = await copyExample(project, "www/extension");
  await runIn("node_modules/typescript/bin/tsc", []);
  await runIn("build.mjs", []);
  const extension = join(folder, "dist");
  // What Chrome does by itself takes its time, which the stops by force pass.
  const alive = livesAsLongAsNeeded(extension);
  alive.catch(() => {});
  const stops = await withPage((panel) => stoppedTwentyTimes(project, panel), { extension });
  await alive;
  await mayDoAll(extension);
  await withPage((panel) => readsPage(project, panel), { extension });
  await withPage((panel, profile) => usesNativeServer(project, panel, profile), { extension });
  return `${STEPS} steps over ${stops} stops of the service worker, each done once; it reads a page, and uses a server by native messaging; its worker stays while a model thinks and rests while a person does`;
}

async function openPanel(panel) {
  const worker = panel.context().serviceWorkers()[0] ?? (await panel.context().waitForEvent("serviceworker"));
  const page = new URL("panel.html", worker.url());
  await panel.goto(page.href);
  return page;
}

async function stoppedTwentyTimes(project, panel) {
  const home = join(project.folder, "extension-shim");
  const ledger = join(home, "ledger");
  await mkdir(home, { recursive: true });
  const page = await openPanel(panel);
  const model = await startSteppingModel({ steps: STEPS, tool: "ledger__step" });
  const lines = [];
  const shim = await startShim({
    binary: join(repository, "target/debug/crablet-shim"),
    folder: home,
    origin: page.href.slice(0, -"/panel.html".length),
    name: "ledger",
    server: { command: process.execPath, args: [join(project.tests, "fixtures/examples/ledger-server.mjs"), ledger] },
    log: (line) => lines.push(line),
    onExit: (code) => lines.push(`the shim ended with exit code ${code}`),
  });
  try {
    const stopWorker = await stopper(panel);
    await setUp(panel, model);
    await connectShim(panel, shim);
    await keepsTheKey(panel);

    await panel.getByLabel("Message").fill("Do all ten steps.");
    await panel.keyboard.press("Enter");
    for (let step = 1; step <= STEPS; step += 1) {
      await model.asked(step);
      await panel.getByText(`Now step ${step}.`, { exact: true }).waitFor();
      await stopWorker();
      await model.asked(step, 2);
      model.release(step);
      const allow = panel.getByRole("button", { name: "Allow ledger__step" });
      await allow.waitFor();
      if (step === ASKED_STEP) {
        await isAccessible(panel, "extension-question");
        await stopWorker();
      }
      await allow.click();
      await written(ledger, step);
      await stopWorker();
      await writeFile(`${ledger}.${step}`, "");
    }
    model.release(STEPS + 1);
    await panel.getByText("All is done: ").waitFor();
    const all = Array.from({ length: STEPS }, (_, index) => index + 1);
    const answer = panel.getByText(`All is done: ${all.map((step) => `step ${step} is done`).join(", ")}`);
    await answer.waitFor();
    await panel.getByRole("button", { name: "Send" }).waitFor();
    assert.deepEqual((await readFile(ledger, "utf8")).trim().split("\n"), all.map(String));
    assert.equal(await panel.locator(".call[data-outcome=done]").count(), STEPS);
    assert.deepEqual([...model.keys], [`Bearer ${KEY}`]);
    await isAccessible(panel, "extension-answer");
    return stopWorker.count();
  } catch (error) {
    const shown = await panel.evaluate(() => document.body.textContent).catch(String);
    throw new Error(`${error.message}\nthe panel shows:\n${shown}\nthe shim said:\n${lines.join("\n")}`, {
      cause: error,
    });
  } finally {
    await shim.stop();
    await model.stop();
  }
}

/** In milliseconds, half as long again as Chrome lets a service worker live without an event. */
const SILENCE = 45_000;

/**
 * Without a debugger at the worker, which Chrome would never stop then: a worker whose model says nothing for long is not stopped,
 * or it would ask the model again. One that waits for a person is, and is started by the decision.
 */
async function livesAsLongAsNeeded(extension) {
  const model = await startSteppingModel({ steps: 1, tool: "read_page" });
  try {
    await withBareChromium(extension, async (browser) => {
      const panel = await browser.open(new URL("panel.html", await browser.worker()).href);
      const ask = async (request) =>
        assert.deepEqual(await panel(`chrome.runtime.sendMessage(${JSON.stringify(request)})`), { done: true });
      const settings = {
        provider: "compatible",
        model: "steps",
        baseUrl: model.url,
        asksBeforeTools: true,
        nativeServers: [],
      };
      await ask({ type: "save", settings, remember: false });
      await ask({ type: "send", text: "What does this page say?" });
      await model.asked(1);
      const stopped = model
        .asked(1, 2)
        .then(() => Promise.reject(new Error("the worker was stopped while the model was silent")));
      await Promise.race([stopped, new Promise((resolve) => setTimeout(resolve, SILENCE))]);
      model.release(1);
      model.release(2);
      await browser.noWorker();
      await panel(`document.querySelector("[aria-label='Allow read_page']").click()`);
      await model.asked(2);
    });
  } finally {
    await model.stop();
  }
}

/** What stops the service worker, and returns once it is gone. */
async function stopper(panel) {
  const session = await panel.context().newCDPSession(panel);
  let stopped = 0;
  let told = () => {};
  const running = new Set();
  session.on("ServiceWorker.workerVersionUpdated", ({ versions }) => {
    for (const { versionId, runningStatus } of versions) {
      if (runningStatus === "running") running.add(versionId);
      if (runningStatus === "stopped" && running.delete(versionId)) {
        stopped += 1;
        told();
      }
    }
  });
  await session.send("ServiceWorker.enable");
  const stop = async () => {
    const isGone = new Promise((resolve) => {
      told = resolve;
    });
    await session.send("ServiceWorker.stopAllWorkers");
    await isGone;
  };
  return Object.assign(stop, { count: () => stopped });
}

/** Names the model and gives the key. */
async function setUp(panel, model) {
  await panel.getByLabel("Provider").selectOption("compatible");
  await panel.getByLabel("Address of the server").fill(model.url);
  await panel.getByLabel("Name of the model").fill("steps");
  await panel.getByLabel("Key", { exact: true }).fill(KEY);
  await isAccessible(panel, "extension-settings");
  await panel.getByRole("button", { name: "Save" }).click();
  await panel.getByRole("heading", { name: "Settings" }).waitFor({ state: "hidden" });
  await panel.getByRole("button", { name: "Settings" }).click();
  await panel.getByText("There is a key.").waitFor();
}

/** Types the code that the shim shows. */
async function connectShim(panel, shim) {
  await panel.getByLabel("Code that crablet-shim pair shows").fill(await shim.pair());
  await panel.getByLabel("Address of the shim").fill(shim.url);
  await panel.getByRole("button", { name: "Connect", exact: true }).click();
  await panel.getByText("Connected: ledger").waitFor();
  await panel.getByRole("button", { name: "Settings" }).click();
}

/** What a user allows by a click on the extension's icon, and in a window of the browser: no test can click there. */
async function mayDoAll(extension) {
  const path = join(extension, "manifest.json");
  const manifest = JSON.parse(await readFile(path, "utf8"));
  const permissions = [...manifest.permissions, ...manifest.optional_permissions];
  await writeFile(path, JSON.stringify({ ...manifest, permissions, host_permissions: ["http://127.0.0.1/*"] }));
}

/** The page that is open beside the panel, once the user has agreed. */
async function readsPage(project, panel) {
  const model = await startSteppingModel({ steps: 1, tool: "read_page", held: false });
  const site = await serveFolder(join(project.tests, "fixtures/examples"));
  try {
    await openPanel(panel);
    await setUp(panel, model);
    await panel.getByRole("button", { name: "Settings" }).click();
    const page = await panel.context().newPage();
    await page.goto(`${site.url}/page.html`);
    await panel.getByLabel("Message").fill("What does this page say?");
    await panel.getByLabel("Message").press("Enter");
    await panel.getByRole("button", { name: "Allow read_page" }).click();
    await panel.getByText(/^All is done: .*the tea is at four/).waitFor();
  } finally {
    await site.stop();
    await model.stop();
  }
}

/** A key that nobody asked to keep is not on the disk, and not in the page. */
async function keepsTheKey(panel) {
  const local = await panel.evaluate(() => chrome.storage.local.get(null));
  assert.ok(local.pairing !== undefined && !JSON.stringify(local).includes(KEY));
  assert.equal(await panel.getByLabel("Key", { exact: true }).inputValue(), "");
}

async function written(ledger, step) {
  for (;;) {
    const lines = (await readFile(ledger, "utf8").catch(() => "")).split("\n");
    if (lines.includes(String(step))) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** The shim as the browser starts it. */
async function usesNativeServer(project, panel, profile) {
  const home = join(project.folder, "extension-native");
  const ledger = join(home, "ledger");
  await mkdir(home, { recursive: true });
  await writeFile(`${ledger}.1`, "");
  const config = join(home, "servers.json");
  const server = {
    command: process.execPath,
    args: [join(project.tests, "fixtures/examples/ledger-server.mjs"), ledger],
  };
  await writeFile(config, JSON.stringify({ mcpServers: { ledger: server } }));
  const model = await startSteppingModel({ steps: 1, tool: "ledger__step", held: false });
  try {
    const { host } = await openPanel(panel);
    const place = ["--browser", "chromium", "--user-data-dir", profile, "--config", config];
    await run(
      join(repository, "target/debug/crablet-shim"),
      ["install", ...place, "--extension", host, "--server", "ledger"],
      {
        env: { HOME: home, XDG_CONFIG_HOME: undefined, CRABLET_STATE_DIR: join(home, "state") },
      },
    );
    await setUp(panel, model);
    await panel.getByLabel("Servers that crablet-shim install lent to this extension").fill("ledger");
    await panel.getByRole("button", { name: "Use", exact: true }).click();
    await panel.getByRole("heading", { name: "Settings" }).waitFor({ state: "hidden" });
    await panel.getByLabel("Message").fill("Do one step.");
    await panel.getByLabel("Message").press("Enter");
    await panel.getByRole("button", { name: "Allow ledger__step" }).click();
    await panel.getByText("All is done: step 1 is done").waitFor();
    assert.equal(await readFile(ledger, "utf8"), "1\n");
  } finally {
    await model.stop();
  }
}
