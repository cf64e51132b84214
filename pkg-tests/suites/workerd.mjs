// The package as an edge worker loads it: the entry of the `workerd` condition, with the wasm as a module of its own. And an MCP
// server in a worker, which needs no wasm.
import assert from "node:assert/strict";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { expectAnswer } from "../lib/rows.mjs";
import { layPackage, startWorkerd, workerdConfig } from "../lib/workerd.mjs";
import { expectedAnswer } from "../smoke/expected.mjs";

export default async function workerd(project) {
  const model = await startModelServer({ delay: 0 });
  try {
    const seen = await askWorkerd(project, model.url);
    await serveMcp(project);
    return `${seen}, an MCP server for clients of both eras`;
  } finally {
    await model.close();
  }
}

/**
 * @param {{ folder: string, tests: string }} project
 * @param {string} modelUrl
 * @param {string} [settings] further lines of the worker's configuration
 */
export async function askWorkerd(project, modelUrl, settings) {
  const folder = await mkdtemp(join(project.folder, "workerd-"));
  const modules = ["worker.mjs", "ask.mjs", "conversation.mjs", "expected.mjs"];
  for (const name of modules) {
    const from = join(project.tests, name === "worker.mjs" ? "fixtures/workerd" : "smoke", name);
    // Its modules have names, not places.
    await writeFile(join(folder, name), (await readFile(from, "utf8")).replaceAll("../../smoke/", "./"));
  }
  modules.push(...(await layPackage(project, folder)));
  await writeFile(join(folder, "config.capnp"), workerdConfig(modules, { worker: settings }));
  const server = await startWorkerd(folder);
  try {
    const response = await fetch(`${server.url}/?model=${encodeURIComponent(modelUrl)}`);
    expectAnswer(await response.text(), expectedAnswer, `status ${response.status}\n${server.output()}`);
  } finally {
    await server.stop();
  }
  return "a tool call and a streamed answer inside a request handler";
}

/** @param {{ folder: string, tests: string }} project */
async function serveMcp(project) {
  const folder = await mkdtemp(join(project.folder, "workerd-mcp-"));
  await writeFile(
    join(folder, "server.mjs"),
    await readFile(join(project.tests, "fixtures/workerd/server.mjs"), "utf8"),
  );
  const entry = await readFile(join(project.folder, "node_modules/crablet/server.js"), "utf8");
  await writeFile(join(folder, "crablet-server"), entry);
  const config = workerdConfig(["server.mjs", "crablet-server"]);
  await writeFile(join(folder, "config.capnp"), config.replace('name = "crablet-server"', 'name = "crablet/server"'));
  const server = await startWorkerd(folder);
  try {
    const { mcp } = await import(pathToFileURL(join(project.folder, "node_modules/crablet/index.js")).href);
    const refused = await fetch(server.url, {
      method: "POST",
      headers: { origin: "https://evil.example" },
      body: "{}",
    });
    assert.equal(refused.status, 403);
    for (const era of ["stateless", "handshake"]) {
      const elicitation = { form: () => ({ action: "accept", content: { name: "Ada" } }) };
      const client = await mcp.connect(mcp.http(server.url, { era, elicitation }));
      const reports = [];
      const counted = await client.callTool("count", {}, { onProgress: ({ progress }) => reports.push(progress) });
      assert.equal(counted.content[0].text, "counted");
      assert.deepEqual(reports, [1, 2, 3]);
      const greeted = await client.callTool("greet", {});
      // Without a session nobody of the handshake era can be asked.
      const expected = era === "stateless" ? [false, /Hello Ada/] : [true, /cannot|did not say/];
      assert.equal(greeted.isError ?? false, expected[0]);
      assert.match(greeted.content[0].text, expected[1]);
      await client.close();
    }
  } catch (error) {
    throw new Error(`${error.stack}\n${server.output()}`);
  } finally {
    await server.stop();
  }
}
