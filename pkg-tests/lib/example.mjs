// The examples of the repository, with the packed tarball in the place of a crablet from the registry.
import { cp, mkdir, readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { run } from "./process.mjs";
import { repository } from "./project.mjs";

/** What a build leaves behind, and what is installed. */
const NO_SOURCE = new Set(["node_modules", "dist"]);

/**
 * Copies an example into the project, with the packages of its lock file linked in.
 *
 * @param {{ folder: string }} project
 * @param {string} name its folder in the repository
 * @returns {Promise<{ folder: string, run: (script: string, args: string[]) => Promise<string> }>} `run` runs a program of its packages
 */
export async function copyExample(project, name) {
  const source = join(repository, name);
  const folder = join(project.folder, name);
  await cp(source, folder, {
    recursive: true,
    filter: (path) =>
      !path
        .slice(source.length)
        .split("/")
        .some((part) => NO_SOURCE.has(part)),
  });
  await mkdir(join(folder, "node_modules"));
  for (const installed of await readdir(join(source, "node_modules"))) {
    // One that was put there by hand is not the tarball.
    if (installed === "crablet") continue;
    await symlink(join(source, "node_modules", installed), join(folder, "node_modules", installed));
  }
  return { folder, run: (script, args) => run(process.execPath, [script, ...args], { cwd: folder }) };
}
