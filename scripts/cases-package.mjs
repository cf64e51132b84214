// Runs the cases through the packed npm package, in a project that has only the tarball. With CRABLET_CASES=FOLDER another
// folder of them.
import { spawnSync } from "node:child_process";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createProject } from "../pkg-tests/lib/project.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const folder = process.env.CRABLET_CASES ? resolve(root, process.env.CRABLET_CASES) : join(root, "tests/cases");
const project = await createProject();
try {
  const { status } = spawnSync(process.execPath, [join(project.tests, "cases/run.mjs"), folder], {
    cwd: project.folder,
    stdio: ["ignore", "inherit", "inherit"],
  });
  process.exitCode = status ?? 1;
} finally {
  await project.remove();
}
