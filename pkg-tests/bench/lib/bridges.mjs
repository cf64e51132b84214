// The bridges that `make bench-shim` compares: how each is started, and how a client reaches the server behind it.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "../../lib/process.mjs";
import { repository } from "../../lib/project.mjs";
import { connectHttp, connectPipes, connectShim, connectWebSocket } from "./bridge-clients.mjs";

const packages = join(repository, "pkg-tests/bench/node_modules");

/** The name of the server behind every bridge. */
export const SERVER = "stdio-echo";

/** How long a bridge may take until it listens, and until it ends, in milliseconds. */
const START_LIMIT = 20_000;
const STOP_LIMIT = 3_000;

/**
 * A bridge that runs: `connect` gives a client, and the process `pid` with its descendants is what it costs.
 *
 * @typedef {{ pid: number, connect: () => Promise<import("./bridge-clients.mjs").Client>, stop: () => Promise<void> }} Bridge
 */

/**
 * All bridges, by name.
 *
 * @param {string} binaries the folder of the shim, the relay and the server
 * @returns {Record<string, { version: () => Promise<string>, start: () => Promise<Bridge> }>}
 */
export function bridgesOf(binaries) {
  const server = join(binaries, SERVER);
  const webSocket = (port) => connectWebSocket(`ws://127.0.0.1:${port}`);
  const http = (port) => connectHttp(`http://127.0.0.1:${port}/mcp`);
  const proxy = [join(packages, "mcp-proxy/dist/bin/mcp-proxy.mjs"), "--host", "127.0.0.1", "--server", "stream"];
  return {
    "direct stdio": { version: async () => "", start: () => startDirect(server) },
    "bare Rust relay": {
      version: async () => "",
      start: () => startOnPort(join(binaries, "bare-relay"), (port) => [String(port), server], webSocket),
    },
    "crablet-shim": {
      version: () => shimVersion(join(binaries, "crablet-shim")),
      start: () => startShim(join(binaries, "crablet-shim"), server),
    },
    "supergateway (ws)": supergateway(server, "ws", (port) => connectWebSocket(`ws://127.0.0.1:${port}/message`)),
    "supergateway (http)": supergateway(server, "streamableHttp", http, "--stateful"),
    "mcp-proxy (http)": {
      version: () => packageVersion("mcp-proxy"),
      start: () => startOnPort(process.execPath, (port) => [...proxy, "--port", String(port), "--", server], http),
    },
  };
}

function supergateway(server, transport, connectTo, ...options) {
  const program = join(packages, "supergateway/dist/index.js");
  const fixed = ["--stdio", server, "--outputTransport", transport, "--logLevel", "none", ...options];
  return {
    version: () => packageVersion("supergateway"),
    start: () => startOnPort(process.execPath, (port) => [program, ...fixed, "--port", String(port)], connectTo),
  };
}

async function startDirect(server) {
  const child = spawn(server, [], { stdio: ["pipe", "pipe", "inherit"] });
  return { pid: child.pid, connect: () => connectPipes(child), stop: () => stop(child) };
}

async function startShim(program, server) {
  const folder = await mkdtemp(join(tmpdir(), "crablet-bench-"));
  const config = join(folder, "servers.json");
  const environment = { ...process.env, CRABLET_STATE_DIR: join(folder, "state") };
  await writeFile(config, JSON.stringify({ mcpServers: { echo: { command: server } } }));
  const granted = await promisify(execFile)(program, ["grant", "--native", "--server", "echo"], { env: environment });
  const bridge = await startOnPort(
    program,
    (port) => ["serve", "--config", config, "--port", String(port)],
    (port) => connectShim({ port, server: "echo", token: granted.stdout.trim() }),
    environment,
  );
  const end = async () => {
    await bridge.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return { ...bridge, stop: end };
}

/** A bridge counts as started when its port takes connections; the time before that counts, getting it ready does not. */
async function startOnPort(program, argumentsFor, connectTo, env = process.env) {
  const port = await freePort();
  const startedAt = performance.now();
  const child = spawn(program, argumentsFor(port), { stdio: "ignore", env });
  const ended = once(child, "exit").then(([code]) => Promise.reject(new Error(`${program} exited with ${code}`)));
  await Promise.race([listening(port), ended]);
  ended.catch(() => {});
  return { pid: child.pid, startedAt, connect: () => connectTo(port), stop: () => stop(child) };
}

async function listening(port) {
  const deadline = performance.now() + START_LIMIT;
  while (performance.now() < deadline) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await new Promise((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  throw new Error(`nobody listens on port ${port}`);
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT);
  child.kill("SIGTERM");
  await exited;
  clearTimeout(timer);
}

async function packageVersion(name) {
  return JSON.parse(await readFile(join(packages, name, "package.json"), "utf8")).version;
}

async function shimVersion(program) {
  const { stdout } = await promisify(execFile)(program, ["--version"]);
  return stdout.trim().replace(/^\S+ /, "");
}
