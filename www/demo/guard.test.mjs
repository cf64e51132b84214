import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { expectGone } from "./demo-process.mjs";
import { descendantsOf } from "./processes.mjs";

const guard = fileURLToPath(new URL("guard.mjs", import.meta.url));
// Prints a line when it runs, has a child of its own, and takes no notice of a polite signal when told so.
const worker = (politely) => `
  ${politely ? "" : 'process.on("SIGTERM", () => {});'}
  require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "inherit" });
  console.log("works");
  setInterval(() => {}, 1000);
`;

/** A process that asks the guard to run a worker, and everything that then runs because of it. */
async function start(politely) {
  const asker = spawn(
    process.execPath,
    [
      "-e",
      `
    const child = require("node:child_process").spawn(process.execPath, ${JSON.stringify([guard, process.execPath, "-e", worker(politely)])}, { stdio: ["pipe", "inherit", "inherit"] });
    process.on("message", () => child.stdin.end());
  `,
    ],
    { stdio: ["ignore", "pipe", "inherit", "ipc"] },
  );
  await once(asker.stdout, "data");
  const processes = await descendantsOf(asker.pid);
  assert.equal(processes.length, 3, "the guard, the worker and its child");
  return { asker, processes };
}

test("when the asker is killed, nothing stays", async () => {
  const { asker, processes } = await start(true);
  asker.kill("SIGKILL");
  await expectGone(processes);
});

test("when the asker closes the pipe, nothing stays, even what does not listen", async () => {
  const { asker, processes } = await start(false);
  asker.send("close");
  await expectGone(processes);
  asker.kill();
});

test("the exit code is the command's", async () => {
  const child = spawn(process.execPath, [guard, process.execPath, "-e", "process.exit(7)"], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  assert.equal((await once(child, "exit"))[0], 7);
});
