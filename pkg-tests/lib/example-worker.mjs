// The example worker in workerd: built from the tarball, with its objects on the disk.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { copyExample } from "./example.mjs";
import { startServer } from "./process.mjs";
import { repository } from "./project.mjs";
import { startWorkerd, workerdConfig } from "./workerd.mjs";

export const PASSWORD = "let me in";
export const KEY = "sk-only-for-the-model";

/** What the worker is given where a test says nothing else. */
export const BINDINGS = {
  API_KEY: KEY,
  PASSWORD,
  MODEL: "steps",
  MODEL_URL: "",
  MCP_URL: "",
  MCP_ASKS: "yes",
  RESUME_AFTER_SECONDS: "1",
  APPROVAL_SECONDS: "86400",
  LEASE_SECONDS: "60",
  FORGET_AFTER_SECONDS: "2592000",
};

/** The classes of its objects, by the names of their bindings. */
export const CLASSES = { CHATS: "Chat", DIRECTORIES: "Directory" };

export const MODULES = ["worker.js", "crablet.wasm", "holder.txt"];

/** Evicts a conversation as the platform does: WebSockets stay open. Not part of the example. */
const CONTROL = `import unsafe from "workerd:unsafe";
export default {
  async fetch(request, env) {
    const id = env.CHATS.idFromName("everybody/" + new URL(request.url).searchParams.get("chat"));
    await unsafe.evict(env.CHATS.get(id), { webSockets: "hibernate" });
    return new Response("evicted");
  },
};`;

const built = new WeakMap();

/**
 * Checks and builds it, once for all suites of a run.
 *
 * @param {{ folder: string }} project
 * @returns {Promise<string>} the folder of the modules
 */
export function buildExampleWorker(project) {
  if (!built.has(project)) built.set(project, buildIn(project));
  return built.get(project);
}

async function buildIn(project) {
  const { folder, run } = await copyExample(project, "www/worker");
  const tsc = "node_modules/typescript/bin/tsc";
  await run(tsc, []);
  await run(tsc, ["-p", "page"]);
  await run("build.mjs", []);
  const home = join(folder, "dist");
  await writeFile(join(home, "control.js"), CONTROL);
  return home;
}

/**
 * Lays the configuration, and starts workerd.
 *
 * @param {string} home the folder of the modules
 * @param {Record<string, string>} bindings what is other than in `BINDINGS`
 * @param {{ port?: number, disk?: string }} [place] the port, a free one by default; the folder of the objects within `home`
 */
export async function serveExampleWorker(home, bindings, { port = 0, disk = "disk" } = {}) {
  await mkdir(join(home, disk), { recursive: true });
  const texts = Object.entries({ ...BINDINGS, ...bindings });
  const classes = Object.entries(CLASSES);
  const worker = `
  durableObjectNamespaces = [
    ${classes.map(([, name]) => `(className = "${name}", uniqueKey = "${name}", enableSql = true)`).join(",\n    ")} ],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [
    ${classes.map(([name, to]) => `(name = "${name}", durableObjectNamespace = "${to}")`).join(",\n    ")},
    ${texts.map(([name, text]) => `(name = "${name}", text = ${JSON.stringify(text)})`).join(",\n    ")} ],`;
  const rest = `const control :Workerd.Worker = (
  modules = [ (name = "control.js", esModule = embed "control.js") ],
  compatibilityDate = "2026-04-01",
  compatibilityFlags = [ "unsafe_module" ],
  bindings = [ (name = "CHATS", durableObjectNamespace = (className = "Chat", serviceName = "main")) ] );
`;
  const services = `, (name = "disk", disk = (path = "${disk}", writable = true)), (name = "control", worker = .control)`;
  const sockets = `, (name = "control", address = "127.0.0.1:0", http = (), service = "control")`;
  await writeFile(join(home, "config.capnp"), workerdConfig(MODULES, { worker, services, sockets, rest, port }));
  // For the means to evict; the worker itself uses nothing of the kind.
  const server = await startWorkerd(home, ["--experimental"]);
  return {
    ...withPassword(server),
    /** Evicts the conversation of a name. */
    async evict(chat) {
      const control = /"socket":"control","port":(\d+)/.exec(server.output())?.[1];
      const response = await fetch(`http://127.0.0.1:${control}/?chat=${chat}`);
      if ((await response.text()) !== "evicted") throw new Error(`${chat} was not evicted`);
    },
  };
}

/** As `serveExampleWorker`, but in miniflare, under another Node where one is given. */
export async function serveInMiniflare(project, home, bindings, { port, disk }, program = process.execPath) {
  const given = {
    packages: join(repository, "pkg-tests/runtimes/package.json"),
    ...{ home, modules: MODULES, classes: CLASSES, bindings: { ...BINDINGS, ...bindings }, port, disk },
  };
  const script = join(project.tests, "fixtures/fleet/miniflare.mjs");
  const server = await startServer(program, [script, JSON.stringify(given)], { ready: /^ready at (.*)\/$/m });
  return withPassword({ ...server, url: server.match[1] });
}

const withPassword = (server) => ({
  ...server,
  /** Asks the worker as a program does that knows the password. */
  ask: (path, options = {}) =>
    fetch(`${server.url}${path}`, { ...options, headers: { authorization: `Bearer ${PASSWORD}`, ...options.headers } }),
});
