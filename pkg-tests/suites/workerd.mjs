// The package as an edge worker loads it: the entry of the `workerd` condition, with the wasm as a module of its own.
import { copyFile, readdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { startServer } from "../lib/process.mjs";
import { expectedAnswer } from "../smoke/expected.mjs";

const require = createRequire(import.meta.url);

export default async function workerd(project) {
  const folder = join(project.tests, "fixtures/workerd");
  const modules = await layModules(project, folder);
  await writeFile(join(folder, "config.capnp"), config(modules));

  const model = await startModelServer({ delay: 0 });
  const program = join(dirname(require.resolve("workerd/package.json")), "bin/workerd");
  const server = await startServer(program, ["serve", "--control-fd=3", "config.capnp"], {
    cwd: folder,
    controlFd: true,
    ready: /"event":"listen","socket":"http","port":(\d+)/,
  });
  try {
    const response = await fetch(`http://127.0.0.1:${server.match[1]}/?model=${encodeURIComponent(model.url)}`);
    const body = await response.text();
    if (body !== expectedAnswer)
      throw new Error(`status ${response.status}, not the answer:\n${body}\n${server.output()}`);
  } finally {
    await server.stop();
    await model.close();
  }
  return "a tool call and a streamed answer inside a request handler";
}

/**
 * Lays all modules into one folder, since the configuration embeds files by relative paths. workerd resolves no packages,
 * so each module is listed under the name that imports use.
 */
async function layModules(project, folder) {
  const installed = join(project.folder, "node_modules/crablet");
  const { exports } = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  const entry = exports["."].workerd.replace("./", "");
  const modules = ["worker.mjs"];
  for (const name of ["ask.mjs", "expected.mjs"]) {
    await copyFile(join(project.tests, "smoke", name), join(folder, name));
    modules.push(name);
  }
  await copyFile(join(installed, entry), join(folder, "crablet"));
  modules.push("crablet");
  for (const name of await readdir(installed)) {
    if (!/\.(?:js|wasm)$/.test(name) || /^index/.test(name)) continue;
    await copyFile(join(installed, name), join(folder, name));
    modules.push(name);
  }
  return modules;
}

function config(modules) {
  const list = modules.map(
    (name) => `(name = "${name}", ${name.endsWith(".wasm") ? "wasm" : "esModule"} = embed "${name}")`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = .worker), (name = "net", network = (allow = ["private"])) ],
  sockets = [ (name = "http", address = "127.0.0.1:0", http = (), service = "main") ] );
const worker :Workerd.Worker = (
  modules = [
    ${list.join(",\n    ")}
  ],
  compatibilityDate = "2026-04-01",
  globalOutbound = "net" );
`;
}
