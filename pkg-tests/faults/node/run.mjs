// The fault harness with the packed package: `node pkg-tests/faults/node/run.mjs FOLDER HARNESS [ARGUMENT...]` installs the tarball of the
// folder into a project of its own and starts the harness with the command that starts a client there.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";
import { createProject } from "../../lib/project.mjs";

const [dist, harness, ...args] = process.argv.slice(2);
if (harness === undefined) {
  console.error("usage: node pkg-tests/faults/node/run.mjs FOLDER HARNESS [ARGUMENT...]");
  process.exit(2);
}
// Node has a WebSocket of its own from 22 on, and before behind a flag.
const flags = ["--expose-gc", ...(globalThis.WebSocket === undefined ? ["--experimental-websocket"] : [])];
const project = await createProject(resolve(dist));
try {
  const client = [process.execPath, ...flags, join(project.tests, "faults/node/client.mjs")];
  const [code] = await once(spawn(resolve(harness), [...args, ...client], { stdio: "inherit" }), "exit");
  process.exitCode = code ?? 1;
} finally {
  await project.remove();
}
