// workerd, and the tarball's modules in a form that it takes.
import { copyFile, readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { startServer } from "./process.mjs";

/** How the configuration calls modules that are no script. */
const KINDS = { ".wasm": "wasm", ".txt": "text" };

const require = createRequire(import.meta.url);

/**
 * Lays the modules of the package into a folder, since the configuration embeds files by relative paths. workerd resolves no
 * packages, so each module is listed under the name that imports use.
 *
 * @param {{ folder: string }} project
 * @param {string} folder
 * @param {Record<string, string>} [entries] further entries of the package: the name that imports use, and the file
 * @returns {Promise<string[]>} the names of the modules
 */
export async function layPackage(project, folder, entries = {}) {
  const installed = join(project.folder, "node_modules/crablet");
  const { exports } = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  const modules = [];
  const all = { crablet: exports["."].workerd.replace("./", ""), ...entries };
  for (const [name, file] of Object.entries(all)) {
    await copyFile(join(installed, file), join(folder, name));
    modules.push(name);
  }
  for (const name of await readdir(installed)) {
    if (!/\.(?:js|wasm)$/.test(name) || /^index/.test(name) || Object.values(all).includes(name)) continue;
    await copyFile(join(installed, name), join(folder, name));
    modules.push(name);
  }
  return modules;
}

/**
 * A worker and the network it may reach, as the configuration names them.
 *
 * @param {readonly string[]} modules the first one is the worker
 * @param {{ worker?: string, services?: string, sockets?: string, rest?: string, port?: number }} [more] further lines of the worker,
 *   further services, sockets and constants, and the port, a free one by default
 */
export function workerdConfig(modules, { worker = "", services = "", sockets = "", rest = "", port = 0 } = {}) {
  const list = modules.map((name) => `(name = "${name}", ${KINDS[extname(name)] ?? "esModule"} = embed "${name}")`);
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = .worker), (name = "net", network = (allow = ["private"]))${services} ],
  sockets = [ (name = "http", address = "127.0.0.1:${port}", http = (), service = "main")${sockets} ] );
const worker :Workerd.Worker = (
  modules = [
    ${list.join(",\n    ")}
  ],
  compatibilityDate = "2026-04-01",${worker}
  globalOutbound = "net" );
${rest}`;
}

/**
 * Serves the `config.capnp` of a folder.
 *
 * @param {string} folder
 * @param {readonly string[]} [args] further arguments
 */
export async function startWorkerd(folder, args = []) {
  const program = join(dirname(require.resolve("workerd/package.json")), "bin/workerd");
  const server = await startServer(program, ["serve", "--control-fd=3", ...args, "config.capnp"], {
    cwd: folder,
    controlFd: true,
    ready: /"event":"listen","socket":"http","port":(\d+)/,
  });
  return { ...server, url: `http://127.0.0.1:${server.match[1]}` };
}
