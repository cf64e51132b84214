// Runs crablet-shim for the demo: one stdio server, a token for the page's origin, nothing left behind.
import { execFile, spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** The shim's default port, used when it is free so that the demo shows what users will see. */
const DEFAULT_PORT = 6735;

/** How long the shim may take until it listens, in milliseconds. */
const START_LIMIT = 20_000;

const guard = join(dirname(fileURLToPath(import.meta.url)), "guard.mjs");

/**
 * Starts the shim and grants a token.
 *
 * @param {{ binary: string, folder: string, origin?: string, name?: string, server?: object, servers?: Record<string, object>, further?: string[], log: (line: string) => void, onExit: (code: number) => void }} options
 *   `folder` is a private folder for its configuration and state; without an `origin` the token is for programs that are no
 *   browser; it runs `server` as `name`, or all `servers` by name; `further` are options of `crablet-shim serve`
 * @returns {Promise<{ url: string, token: string, pid: number, pair: (...further: string[]) => Promise<string>, agent: () => import("node:child_process").ChildProcess, stop: () => Promise<void> }>}
 *   `pair` shows a code for the same client and servers, as `crablet-shim pair` does in a terminal; `agent` starts what agents of
 *   this machine have for an MCP server
 */
export async function startShim(options) {
  const { binary, folder, origin, name, server, servers = { [name]: server }, further = [], log, onExit } = options;
  const config = join(folder, "servers.json");
  await writeFile(config, JSON.stringify({ mcpServers: servers }, undefined, 2));
  const environment = { ...process.env, CRABLET_STATE_DIR: join(folder, "state") };
  const client = origin === undefined ? ["--native"] : ["--origin", origin];
  const named = Object.keys(servers).flatMap((server) => ["--server", server]);
  const { stdout } = await promisify(execFile)(binary, ["grant", ...client, ...named], { env: environment });
  const token = tokenIn(stdout);

  const port = (await portIfFree(DEFAULT_PORT)) ?? (await portIfFree(0));
  const serve = ["serve", "--config", config, "--port", String(port), ...further];
  const child = spawn(process.execPath, [guard, binary, ...serve], {
    env: environment,
    stdio: ["pipe", "pipe", "pipe"],
  });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  let isStopping = false;
  void exited.then((code) => isStopping || onExit(code ?? 1));
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on("line", log);
  await listening(port, exited);

  return {
    url: `ws://127.0.0.1:${port}`,
    token,
    pid: child.pid,
    pair: (...further) => {
      const parameters = ["pair", ...client, ...named, ...further];
      return firstLine(spawn(binary, parameters, { env: environment, stdio: ["ignore", "pipe", "ignore"] }));
    },
    agent: () => spawn(binary, ["expose"], { env: environment, stdio: ["pipe", "pipe", "inherit"] }),
    stop: async () => {
      isStopping = true;
      child.stdin.end();
      await exited;
    },
  };
}

/** What a program prints first. The program goes on. */
async function firstLine(program) {
  for await (const line of createInterface({ input: program.stdout })) return line;
  throw new Error("crablet-shim pair printed no code");
}

/** The token in what `grant` prints: the one word of the form `<key-id>.<secret>`. */
export function tokenIn(output) {
  const token = /(?:^|\s)([\w-]{4,}\.[\w-]{20,})(?:\s|$)/.exec(output)?.[1];
  if (!token) throw new Error("crablet-shim grant printed no token");
  return token;
}

function portIfFree(port) {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(undefined));
    probe.listen(port, "127.0.0.1", () => {
      const { port: found } = probe.address();
      probe.close(() => resolve(found));
    });
  });
}

/** Resolves when something accepts connections at the port. */
async function listening(port, exited) {
  const deadline = Date.now() + START_LIMIT;
  let isGone = false;
  void exited.then(() => (isGone = true));
  while (!(await connects(port))) {
    if (isGone) throw new Error("crablet-shim ended before it listened; its last lines stand above");
    if (Date.now() > deadline) throw new Error(`crablet-shim did not listen within ${START_LIMIT / 1000} seconds`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function connects(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
