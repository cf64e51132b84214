// Sessions that outlive their process: Node killed with SIGKILL, a page that is reloaded, an extension's service worker that is
// stopped, a Durable Object whose runtime is killed. And each store's contract where the store lives.
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { withPage } from "../lib/browser.mjs";
import { run, startServer } from "../lib/process.mjs";
import { copyPackage } from "../lib/project.mjs";
import { serveFolder } from "../lib/servers.mjs";
import { layPackage, startWorkerd, workerdConfig } from "../lib/workerd.mjs";
import { isRightLedger, rightEnd } from "../fixtures/durable/expected.mjs";

export default async function durable(project) {
  const fixtures = join(project.tests, "fixtures/durable");
  await copyFile(join(project.tests, "stores/contract.mjs"), join(fixtures, "contract.mjs"));
  await node(fixtures);
  await page(project, fixtures);
  await extension(project, fixtures);
  for (const form of ["keys", "sqlite"]) await durableObject(project, fixtures, form);
  return "Node killed, a page reloaded, an extension's worker stopped, workerd killed: each run went on to its right end";
}

function check(where, result, ledger) {
  if (JSON.stringify(result) !== JSON.stringify(rightEnd))
    throw new Error(`${where}: ${JSON.stringify(result)} is not ${JSON.stringify(rightEnd)}`);
  if (!isRightLedger(ledger)) throw new Error(`${where}: the tools did ${JSON.stringify(ledger)}`);
}

async function node(fixtures) {
  const folder = await mkdtemp(join(tmpdir(), "crablet-durable-"));
  const script = join(fixtures, "node.mjs");
  try {
    const first = await startServer(process.execPath, [script, "begin", folder], { ready: /^at work$/m });
    await first.kill();
    const output = await run(process.execPath, [script, "goOn", folder]);
    const result = JSON.parse(/^result (.*)$/m.exec(output)?.[1] ?? "null");
    const ledger = (await readFile(join(folder, "ledger"), "utf8")).trim().split("\n");
    check("Node", result, ledger);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function page(project, fixtures) {
  await copyPackage(project, fixtures);
  const site = await serveFolder(fixtures);
  const ready = (tab) => tab.waitForFunction(() => window.lives !== undefined);
  try {
    await withPage(async (tab) => {
      await tab.goto(`${site.url}/index.html`);
      await ready(tab);
      await tab.evaluate(() => window.lives.contract());
      await tab.evaluate(() => window.lives.contractInWorker());
      await tab.evaluate(() => window.lives.begin());
      await tab.reload();
      await ready(tab);
      const result = await tab.evaluate(() => window.lives.goOn());
      check("the page", result, await tab.evaluate(() => window.lives.ledger()));
    });
  } finally {
    await site.stop();
  }
}

async function extension(project, fixtures) {
  const folder = join(fixtures, "extension");
  await copyPackage(project, folder);
  for (const name of ["contract.mjs", "scenario.mjs"]) {
    const source = await readFile(join(fixtures, name), "utf8");
    // The service worker of an extension knows no import map.
    await writeFile(join(folder, name), source.replaceAll('from "crablet"', 'from "./crablet/index.js"'));
  }
  await withPage(
    async (tab) => {
      const context = tab.context();
      const worker = context.serviceWorkers()[0] ?? (await context.waitForEvent("serviceworker"));
      await tab.goto(new URL("page.html", worker.url()).href);
      // A message starts the service worker where it does not run.
      const lives = async (wanted) => {
        const { value, error } = await tab.evaluate((message) => chrome.runtime.sendMessage(message), wanted);
        if (error !== undefined) throw new Error(`the extension, ${wanted}: ${error}`);
        return value;
      };
      await lives("contract");
      await lives("begin");
      const bootId = await lives("bootId");
      const session = await context.newCDPSession(tab);
      await session.send("ServiceWorker.enable");
      await session.send("ServiceWorker.stopAllWorkers");
      const result = await lives("goOn");
      if ((await lives("bootId")) === bootId) throw new Error("the service worker was not stopped");
      check("the extension", result, await lives("ledger"));
    },
    { extension: folder },
  );
}

async function durableObject(project, fixtures, form) {
  const folder = join(fixtures, `workerd-${form}`);
  await mkdir(join(folder, "disk"), { recursive: true });
  const modules = ["worker.mjs", "contract.mjs", "scenario.mjs"];
  for (const name of modules) await copyFile(join(fixtures, name), join(folder, name));
  modules.push(...(await layPackage(project, folder, { "crablet-stores": "stores.js" })));
  const worker = `
  durableObjectNamespaces = [
    (className = "OnKeys", uniqueKey = "keys"),
    (className = "OnSqlite", uniqueKey = "sqlite", enableSql = true) ],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [
    (name = "ON_KEYS", durableObjectNamespace = "OnKeys"),
    (name = "ON_SQLITE", durableObjectNamespace = "OnSqlite") ],`;
  const services = `, (name = "disk", disk = (path = "disk", writable = true))`;
  await writeFile(join(folder, "config.capnp"), workerdConfig(modules, { worker, services }));
  const ask = async (server, path) => {
    const response = await fetch(`${server.url}${path}?on=${form}`);
    if (!response.ok) throw new Error(`workerd, ${form}, ${path}: ${await response.text()}\n${server.output()}`);
    return response.json();
  };
  const first = await startWorkerd(folder);
  try {
    await ask(first, "/contract");
    await ask(first, "/begin");
  } finally {
    await first.kill();
  }
  const second = await startWorkerd(folder);
  try {
    const result = await ask(second, "/goOn");
    check(`workerd, ${form}`, result, await ask(second, "/ledger"));
  } finally {
    await second.stop();
  }
}
