// One conversation that begins in Node, goes on in a browser and ends in a Durable Object, with tools and an open question to a
// person on the way each time. Only text is handed over, from a store of files to IndexedDB to the storage of the object.
import assert from "node:assert/strict";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { withPage } from "../lib/browser.mjs";
import { run } from "../lib/process.mjs";
import { copyPackage } from "../lib/project.mjs";
import { listen, serveFolder } from "../lib/servers.mjs";
import { layPackage, startWorkerd, workerdConfig } from "../lib/workerd.mjs";

export default async function handOver(project) {
  const fixtures = join(project.tests, "fixtures/hand-over");
  const entries = [];
  const ledger = await listen(async (request, response) => {
    let entry = "";
    for await (const piece of request) entry += piece;
    if (request.method === "POST") entries.push(entry);
    response.writeHead(204, { "access-control-allow-origin": "*" }).end();
  });
  try {
    const inNode = await node(fixtures, { ledger: ledger.url });
    assert.deepEqual(inNode.begun, { status: "idle", pending: [], messages: 0 });
    assert.equal(inNode.ended.stopReason, "suspended");

    const inPage = await page(project, fixtures, { ledger: ledger.url, saved: inNode.saved, allow: true });
    assert.deepEqual(inPage.begun, { status: "interrupted", pending: ["pay"], messages: 2 });
    assert.equal(inPage.ended.stopReason, "suspended");

    const inObject = await durableObject(project, fixtures, { ledger: ledger.url, saved: inPage.saved, allow: false });
    assert.deepEqual(inObject.begun, { status: "interrupted", pending: ["remove"], messages: 4 });
    assert.equal(inObject.ended.stopReason, "stop");
    assert.equal(inObject.ended.text, "look done, pay done, look done, remove refused");

    // Each tool once, and the refused one not at all.
    assert.deepEqual(entries, ["look the map", "pay the ticket", "look the weather"]);
    // What was said before is the same at every place.
    const { messages } = inObject.ended;
    assert.deepEqual(
      messages.map(({ role }) => role),
      ["user", "assistant", "tool", "assistant", "tool", "assistant"],
    );
    assert.deepEqual(messages.slice(0, 2), inNode.ended.messages);
    assert.deepEqual(messages.slice(0, 4), inPage.ended.messages);
  } finally {
    await ledger.stop();
  }
  return "from files in Node to IndexedDB to a Durable Object, each tool done once";
}

async function node(fixtures, given) {
  const output = await run(process.execPath, [
    join(fixtures, "node.mjs"),
    join(fixtures, "sessions"),
    JSON.stringify(given),
  ]);
  return JSON.parse(output);
}

async function page(project, fixtures, given) {
  await copyPackage(project, fixtures);
  const site = await serveFolder(fixtures);
  try {
    return await withPage(async (tab) => {
      await tab.goto(`${site.url}/index.html`);
      await tab.waitForFunction(() => window.stage !== undefined);
      return tab.evaluate((stage) => window.stage(stage), given);
    });
  } finally {
    await site.stop();
  }
}

async function durableObject(project, fixtures, given) {
  const folder = join(fixtures, "workerd");
  await mkdir(join(folder, "disk"), { recursive: true });
  const modules = ["worker.mjs", "journey.mjs"];
  for (const name of modules) await copyFile(join(fixtures, name), join(folder, name));
  modules.push(...(await layPackage(project, folder, { "crablet-stores": "stores.js" })));
  const worker = `
  durableObjectNamespaces = [ (className = "Place", uniqueKey = "place", enableSql = true) ],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [ (name = "PLACE", durableObjectNamespace = "Place") ],`;
  const services = `, (name = "disk", disk = (path = "disk", writable = true))`;
  await writeFile(join(folder, "config.capnp"), workerdConfig(modules, { worker, services }));
  const server = await startWorkerd(folder);
  try {
    const response = await fetch(server.url, { method: "POST", body: JSON.stringify(given) });
    const text = await response.text();
    assert.ok(response.ok, `${text}\n${server.output()}`);
    return JSON.parse(text);
  } finally {
    await server.stop();
  }
}
