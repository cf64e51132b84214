// Checks that the tests which docs/security.md names are there: each link whose text is a test's name must lead to a file
// that has it.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const page = join(root, "docs/security.md");
const section = readFileSync(page, "utf8").split("\n## Threats and tests\n")[1];
if (section === undefined) throw new Error('docs/security.md has no section "Threats and tests"');

const missing = [];
let count = 0;
for (const [, name, file] of section.matchAll(/\[(\w+|"[^"]+")\]\((\.\.\/[^)]+\.(?:rs|mjs))\)/g)) {
  count += 1;
  const path = resolve(dirname(page), file);
  const source = existsSync(path) ? readFileSync(path, "utf8") : "";
  // A Rust function right behind a test attribute, or the name given to `test`.
  const rust = new RegExp(`#\\[(?:tokio::)?test\\b[^\\]]*\\]\\s+(?:async )?fn ${name}\\(`);
  const isThere = name.startsWith('"') ? source.includes(`test(${name}`) : rust.test(source);
  if (!isThere) missing.push(`${file.replace("../", "")} has no test ${name}`);
}
for (const line of missing) console.error(`docs/security.md: ${line}`);
if (count === 0) console.error("docs/security.md names no test");
process.exitCode = missing.length > 0 || count === 0 ? 1 : 0;
