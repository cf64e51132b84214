// Checks that all say the same version: the crates, the npm package, its lock file, the changelog. With `--release VERSION` also
// that it is that one, and that nothing is missing without which it cannot be published.
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const text = (file) => readFileSync(join(root, file), "utf8");
const json = (file) => JSON.parse(text(file));

const [flag, wanted] = process.argv.slice(2);
const isRelease = flag === "--release";
if (flag !== undefined && (!isRelease || wanted === undefined)) {
  console.error("usage: node scripts/versions.mjs [--release VERSION]");
  process.exit(2);
}

const cargo = text("Cargo.toml");
const npm = json("src/js/package.json");
const lock = json("src/js/package-lock.json");
const version = wanted ?? npm.version;
const found = {
  "Cargo.toml, [workspace.package]": /^\[workspace\.package\]\nversion = "([^"]+)"/m.exec(cargo)?.[1],
  "Cargo.toml, crablet in [workspace.dependencies]": /^crablet = \{[^}]*version = "([^"]+)"/m.exec(cargo)?.[1],
  "src/js/package.json": npm.version,
  "src/js/package-lock.json": lock.packages[""].version ?? lock.version,
  "CHANGELOG.md, its first heading": /^## \[?([^\]\s]+)/m.exec(text("CHANGELOG.md"))?.[1],
};

const wrong = Object.entries(found)
  .filter(([, says]) => says !== version && (isRelease || says !== "Unreleased"))
  .map(([where, says]) => `${where} says ${says ?? "nothing"}, not ${version}`);
if (isRelease) {
  // npm takes a package with provenance only if this is where it was built.
  if (npm.repository === undefined) wrong.push("src/js/package.json has no repository");
  if (!/^repository/m.test(cargo)) wrong.push("Cargo.toml has no repository");
}

for (const line of wrong) console.error(line);
if (wrong.length === 0) console.log(`all say ${version}`);
process.exitCode = wrong.length === 0 ? 0 : 1;
