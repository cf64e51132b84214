// The package as an edge worker loads it: the entry of the `workerd` condition, with the wasm as a module of its own.
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { layPackage, startWorkerd, workerdConfig } from "../lib/workerd.mjs";
import { expectedAnswer } from "../smoke/expected.mjs";

export default async function workerd(project) {
  const folder = join(project.tests, "fixtures/workerd");
  const modules = ["worker.mjs", "ask.mjs", "expected.mjs"];
  for (const name of modules.slice(1)) await copyFile(join(project.tests, "smoke", name), join(folder, name));
  modules.push(...(await layPackage(project, folder)));
  await writeFile(join(folder, "config.capnp"), workerdConfig(modules));

  const model = await startModelServer({ delay: 0 });
  const server = await startWorkerd(folder);
  try {
    const response = await fetch(`${server.url}/?model=${encodeURIComponent(model.url)}`);
    const body = await response.text();
    if (body !== expectedAnswer)
      throw new Error(`status ${response.status}, not the answer:\n${body}\n${server.output()}`);
  } finally {
    await server.stop();
    await model.close();
  }
  return "a tool call and a streamed answer inside a request handler";
}
