// Unpacks the packed tarball of dist/ where programs of a folder import it from, as npm would.
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");

/** @param {string} folder where the programs are */
export function unpackPackage(folder) {
  const tarball = readdirSync(join(root, "dist")).find((name) => /^crablet-.*\.tgz$/.test(name));
  if (tarball === undefined) throw new Error("there is no tarball in dist/: run make package first");
  const target = join(folder, "node_modules/crablet");
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  execFileSync("tar", ["-xzf", join(root, "dist", tarball), "-C", target, "--strip-components=1"]);
}
