// The servers that adapters talk to, each in a process of its own.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/**
 * @param {"model" | "mcp"} name
 * @param {Record<string, string>} [env]
 * @returns {Promise<{ port: number, stop: () => void }>}
 */
export async function startServer(name, env = {}) {
  const file = fileURLToPath(new URL(`../servers/${name}.mjs`, import.meta.url));
  const child = fork(file, [], { env: { ...process.env, ...env } });
  const [{ port }] = await Promise.race([
    once(child, "message"),
    once(child, "exit").then(([code]) => Promise.reject(new Error(`the server ${name} exited with ${code}`))),
  ]);
  return { port, stop: () => child.kill() };
}
