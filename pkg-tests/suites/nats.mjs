// Over a real nats-server: the shim with the feature `nats`, `crablet/nats` in Node and in a page.
import { copyFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";
import { linkPackages } from "./interop.mjs";

export default async function nats(project) {
  await linkPackages(project.folder, "nats");
  const folder = join(project.tests, "nats");
  const only = process.env.CRABLET_NATS_TESTS?.split(",");
  const files = (await readdir(folder)).filter(
    (name) => name.endsWith(".test.mjs") && (only?.includes(name.split(".")[0]) ?? true),
  );
  const output = await run(process.execPath, [...webSocket(), "--test", "--test-reporter=spec", ...files], {
    cwd: folder,
    timeout: 240_000,
    env: { CRABLET_SHIM_NATS: await buildShim(project) },
  });
  const count = /^ℹ pass (\d+)$/m.exec(output)?.[1];
  if (!count || count === "0") throw new Error(`no test ran:\n${output}`);
  return `${count} tests in ${files.length} files`;
}

/** The shim with the feature, where no other build takes its place; or the one that the variable names. */
export async function buildShim(project) {
  if (process.env.CRABLET_SHIM_NATS) return process.env.CRABLET_SHIM_NATS;
  const build = ["build", "--quiet", "-p", "crablet-shim", "--features", "nats"];
  await run("cargo", build, { cwd: repository, timeout: 900_000 });
  const program = join(project.folder, "crablet-shim");
  await copyFile(join(repository, "target/debug/crablet-shim"), program);
  return program;
}

/** Node has a WebSocket of its own from 22 on, and before behind this flag. */
function webSocket() {
  return globalThis.WebSocket === undefined ? ["--experimental-websocket", "--no-warnings"] : [];
}
