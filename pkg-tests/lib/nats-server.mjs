// A real nats-server with JetStream and WebSocket, on free ports and a folder of its own.
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer } from "./process.mjs";

/**
 * @param {{ config?: string, jetstream?: boolean }} [options] `config` is added to the server's configuration file, such as
 *   users and permissions; with operators and accounts, JetStream has to be off
 * @returns {Promise<{ url: string, webSocketUrl: string, stop: () => Promise<void>, kill: () => Promise<void>, restart: () => Promise<void>, pid: number }>}
 *   the addresses are `nats://127.0.0.1:PORT` and `ws://127.0.0.1:PORT`; `kill` gives it no time to do anything; `restart` ends
 *   it and starts it again with the same ports and what JetStream has stored
 */
export async function startNats({ config = "", jetstream = true } = {}) {
  const folder = await mkdtemp(join(tmpdir(), "crablet-nats-"));
  const forget = () => rm(folder, { recursive: true, force: true });
  try {
    const ports = join(folder, "ports");
    await mkdir(ports);
    const file = join(folder, "nats.conf");
    const lines = (listen = "127.0.0.1:-1", websocket = "127.0.0.1:-1") => [
      `listen: "${listen}"`,
      `websocket { listen: "${websocket}", no_tls: true }`,
      jetstream ? `jetstream { store_dir: ${JSON.stringify(join(folder, "jetstream"))} }` : "",
      `ports_file_dir: ${JSON.stringify(ports)}`,
      config,
    ];
    await writeFile(file, lines().join("\n"));
    const start = () => startServer(program(), ["--config", file], { ready: /Server is ready/ });
    let server = await start();
    const ended = (end) => async () => {
      await server[end]();
      await forget();
    };
    const { nats, websocket } = await readPorts(ports);
    const restart = async () => {
      await server.stop();
      await writeFile(file, lines(new URL(nats[0]).host, new URL(websocket[0]).host).join("\n"));
      server = await start();
    };
    const { pid } = server;
    return { url: nats[0], webSocketUrl: websocket[0], stop: ended("stop"), kill: ended("kill"), restart, pid };
  } catch (error) {
    await forget();
    throw error;
  }
}

/** Packages put it where only root's PATH looks. */
function program() {
  const { NATS_SERVER } = process.env;
  if (NATS_SERVER) return NATS_SERVER;
  return existsSync("/usr/sbin/nats-server") ? "/usr/sbin/nats-server" : "nats-server";
}

/** The file of ports, which the server writes about when it says that it is ready. */
async function readPorts(folder) {
  const deadline = Date.now() + 20_000;
  while (Date.now() < deadline) {
    const name = (await readdir(folder)).find((file) => file.endsWith(".ports"));
    const text = name === undefined ? "" : await readFile(join(folder, name), "utf8");
    if (text.endsWith("}")) return JSON.parse(text);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("nats-server wrote no ports");
}
