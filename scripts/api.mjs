// Holds the public API against the listings in docs/reference/api/: the types of each entry of the npm package, and the items of
// the crate with the features that they need. `node scripts/api.mjs [npm] [crate]`, both by default.
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { listCrate } from "./api/crate.mjs";
import { listDeclarations } from "./api/declarations.mjs";
import { holdGolden } from "./golden.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const LISTINGS = {
  npm: () => listDeclarations(root, JSON.parse(readFileSync(join(root, "src/js/package.json"), "utf8"))),
  crate: () => listCrate(root),
};

const wanted = process.argv.slice(2);
for (const [name, list] of Object.entries(LISTINGS)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  try {
    console.log(`ok ${name}: ${holdGolden(join(root, "docs/reference/api", name), list())}`);
  } catch (error) {
    console.error(`FAILED ${name}\n${error.message}`);
    process.exitCode = 1;
  }
}
