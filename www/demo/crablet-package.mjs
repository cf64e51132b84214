// Puts the packed npm package where the page imports it from. Run by itself, it does only this, for checks of the page's types.
import { mkdir, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { newestTime, rootFolder, run, wwwFolder } from "./building.mjs";

/** Puts the packed tarball of `dist/` where the page imports it from, building it first when the sources are newer. */
export async function installCrablet(say) {
  let tarball = await newestTarball();
  const sources = await newestTime(join(rootFolder, "src"));
  if (!tarball || tarball.time < sources) {
    say("building the npm package (make package; some minutes the first time)");
    await run("make", ["package"], rootFolder);
    tarball = await newestTarball();
    if (!tarball) throw new Error("make package left no crablet-*.tgz in dist/");
  }
  const target = join(wwwFolder, "node_modules/crablet");
  const installed = await stat(join(target, "package.json")).catch(() => undefined);
  const stamp = await readFile(join(target, ".crablet-stamp"), "utf8").catch(() => "");
  if (installed && stamp === stampOf(tarball)) return;
  say("unpacking the packed crablet into the page");
  // What npm would do with a package that has no dependencies, without an entry in the lock file that changes at every build.
  await rm(target, { recursive: true, force: true });
  await mkdir(target, { recursive: true });
  await run("tar", ["-xzf", tarball.path, "-C", target, "--strip-components=1"], wwwFolder);
  await writeFile(join(target, ".crablet-stamp"), stampOf(tarball));
}

async function newestTarball() {
  const folder = join(rootFolder, "dist");
  await mkdir(folder, { recursive: true });
  const names = (await readdir(folder)).filter((name) => /^crablet-\d.*\.tgz$/.test(name));
  const found = await Promise.all(
    names.map(async (name) => ({ path: join(folder, name), time: (await stat(join(folder, name))).mtimeMs })),
  );
  return found.sort((one, other) => other.time - one.time)[0];
}

function stampOf(tarball) {
  return `${tarball.path} ${tarball.time}`;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await installCrablet((line) => console.log(line));
}
