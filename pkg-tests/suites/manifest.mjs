// What the tarball says about itself: publint and "are the types wrong", and the promises of a package without surprises.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";

const bin = (name) => join(repository, "pkg-tests/node_modules/.bin", name);

export default async function manifest(project) {
  const installed = join(project.folder, "node_modules/crablet");
  const { dependencies, type, exports } = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  if (Object.keys(dependencies ?? {}).length > 0) throw new Error("the package has runtime dependencies");
  if (type !== "module") throw new Error("the package is not ESM");
  const readme = await readFile(join(installed, "README.md"), "utf8");
  const lost = [...readme.matchAll(/\]\((?!https?:|#)([^)]*)\)/g)].map(([, path]) => path);
  if (lost.length > 0) throw new Error(`the README links to what the package does not have: ${lost.join(", ")}`);

  await run(bin("publint"), ["run", project.tarball, "--strict"]);
  // CommonJS users need `require` of ESM (Node 20.19), and node10 resolution knows no exports map.
  await run(bin("attw"), [
    project.tarball,
    "--profile",
    "esm-only",
    "--no-color",
    "--exclude-entrypoints",
    "./wasm",
    "./package.json",
  ]);
  return `${Object.keys(exports).length} entries, no dependencies, publint and attw content, a README without dead links`;
}
