// The package as an edge worker loads it: the entry of the `workerd` condition, with the wasm as a module of its own.
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { expectAnswer } from "../lib/rows.mjs";
import { layPackage, startWorkerd, workerdConfig } from "../lib/workerd.mjs";
import { expectedAnswer } from "../smoke/expected.mjs";

export default async function workerd(project) {
  const model = await startModelServer({ delay: 0 });
  try {
    return await askWorkerd(project, model.url);
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
