// A temporary project that has the packed tarball installed and sees nothing else of this repository but the tests.
import { cp, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "./process.mjs";

/** The root of the repository. */
export const repository = resolve(dirname(fileURLToPath(import.meta.url)), "../..");

/** The packages that tests may use beside crablet. Linked in, since installing them again takes long. */
const TEST_PACKAGES = [
  "zod",
  "valibot",
  "@valibot/to-json-schema",
  "arktype",
  "typescript",
  "@types/node",
  "@types/react",
  "undici-types",
];

/**
 * Packs nothing: installs the tarball that `make package` left in dist/.
 *
 * @param {string} [dist] another folder with a tarball
 * @returns {Promise<{ folder: string, tarball: string, tests: string, remove: () => Promise<void> }>} `tests` is the copy of pkg-tests/
 */
export async function createProject(dist = join(repository, "dist")) {
  const tarball = await findTarball(dist);
  const folder = await mkdtemp(join(tmpdir(), "crablet-package-"));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    await writeFile(join(folder, "package.json"), JSON.stringify({ name: "project", private: true, type: "module" }));
    await run("npm", ["install", "--no-audit", "--no-fund", "--no-package-lock", tarball], { cwd: folder });
    await linkTestPackages(folder);
    // The same layout as in the repository, so that relative imports between tests and the demo model hold.
    const tests = join(folder, "pkg-tests");
    const isSource = (path) => !path.includes("node_modules");
    await cp(join(repository, "pkg-tests"), tests, { recursive: true, filter: isSource });
    await cp(join(repository, "www/demo"), join(folder, "www/demo"), { recursive: true, filter: isSource });
    return { folder, tarball, tests, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Puts the package into a folder, for pages and extensions that import it by a path. */
export function copyPackage(project, folder) {
  return cp(join(project.folder, "node_modules/crablet"), join(folder, "crablet"), {
    recursive: true,
    dereference: true,
  });
}

async function findTarball(dist) {
  const { version } = JSON.parse(await readFile(join(repository, "src/js/package.json"), "utf8"));
  const name = `crablet-${version}.tgz`;
  const files = await readdir(dist).catch(() => []);
  if (!files.includes(name)) throw new Error(`${join(dist, name)} is missing: run make package first`);
  return join(dist, name);
}

async function linkTestPackages(folder) {
  for (const name of TEST_PACKAGES) {
    const target = join(folder, "node_modules", name);
    await mkdir(dirname(target), { recursive: true });
    await symlink(join(repository, "pkg-tests/node_modules", name), target, "dir");
  }
}
