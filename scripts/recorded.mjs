// Runs the recorded traffic natively and through the packed npm package, and ends with one `N passed, N failed`.
//
// The recordings belong to other projects and are not part of this one: they are read in ../shared/recorded, or where
// CRABLET_RECORDED=FOLDER says. Where there are none, that is said, and nothing has failed unless a folder was named.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createProject } from "../pkg-tests/lib/project.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const named = process.env.CRABLET_RECORDED;
const folder = resolve(root, named ?? "../shared/recorded");
const total = { passed: 0, failed: 0 };

if (!existsSync(folder)) {
  console.log(`recorded traffic is absent (there is no ${folder}), so nothing was decoded`);
  if (named !== undefined) total.failed += 1;
} else {
  console.log("-- native");
  count("cargo", ["test", "--quiet", "--test", "recorded"], { cwd: root });
  console.log("-- the packed npm package");
  const project = await createProject();
  try {
    count(process.execPath, [join(project.tests, "cases/recorded.mjs"), folder], { cwd: project.folder });
  } finally {
    await project.remove();
  }
}
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 ? 0 : 1;

/** Runs one runner, shows what it says and adds its last line to the total. */
function count(command, args, { cwd }) {
  const { stdout, status } = spawnSync(command, args, {
    cwd,
    env: { ...process.env, CRABLET_RECORDED: folder },
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
    maxBuffer: 256 * 1024 * 1024,
  });
  const [, passed, failed] = /(\d+) passed, (\d+) failed\s*$/.exec(stdout) ?? [undefined, "0", "0"];
  total.passed += Number(passed);
  total.failed += Number(failed);
  // One that broke off counted nothing.
  if (status !== 0 && failed === "0") total.failed += 1;
  process.stdout.write(stdout);
}
