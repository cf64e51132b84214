// The MCP project's own test server over Streamable HTTP, for checks.
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const folder = dirname(fileURLToPath(import.meta.url));

/**
 * Starts the server at a free port.
 *
 * @returns {Promise<{ url: string, stop: () => Promise<void> }>}
 */
export async function startEverything() {
  const manifest = join(folder, "node_modules/@modelcontextprotocol/server-everything/package.json");
  const { bin } = JSON.parse(await readFile(manifest, "utf8"));
  const port = await freePort();
  const script = join(dirname(manifest), Object.values(bin)[0]);
  // Under the guard, so that it goes when the check does, however that ends.
  const child = spawn(process.execPath, [join(folder, "guard.mjs"), process.execPath, script, "streamableHttp"], {
    env: { ...process.env, PORT: String(port) },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  await new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on("line", (line) => line.includes("listening") && resolve());
    void exited.then(() => reject(new Error("server-everything ended before it listened")));
  });
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    stop: async () => {
      child.stdin.end();
      await exited;
    },
  };
}

/** A port that nothing listens at. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
