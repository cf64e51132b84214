// What the steps of the set-up share: running commands, and knowing what is out of date.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const demoFolder = dirname(fileURLToPath(import.meta.url));
export const wwwFolder = dirname(demoFolder);
export const rootFolder = dirname(wwwFolder);

/** When the newest file at or below `path` was changed; 0 when there is none. What builds leave behind is not looked at. */
export async function newestTime(path) {
  if (!existsSync(path)) return 0;
  const info = await stat(path);
  if (!info.isDirectory()) return info.mtimeMs;
  const names = (await readdir(path)).filter((name) => !["node_modules", "pkg", "dist", "generated"].includes(name));
  return Math.max(0, ...(await Promise.all(names.map((name) => newestTime(join(path, name))))));
}

/** Runs a command that prints for itself. */
export async function run(command, parameters, folder) {
  const code = await exitCode(spawn(command, parameters, { cwd: folder, stdio: ["ignore", "inherit", "inherit"] }));
  if (code !== 0) throw new Error(`${[command, ...parameters].join(" ")} failed with exit code ${code}`);
}

/** Runs a command and gives its exit code and what it printed. */
export async function capture(command, parameters, folder) {
  const child = spawn(command, parameters, { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (piece) => {
    output += piece;
  });
  return { code: await exitCode(child), output };
}

function exitCode(child) {
  return new Promise((resolve, reject) => {
    child.on("error", (error) => reject(new Error(`${child.spawnfile} could not be started: ${error.message}`)));
    child.on("close", resolve);
  });
}
