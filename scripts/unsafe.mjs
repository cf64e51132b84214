// Checks that no Rust of this repository is `unsafe` but what macros write: each crate forbids it, which nothing inside of a crate
// can take back, and no file says the word in code. cargo-fuzz and wasm-bindgen write glue that is.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const files = (pattern) =>
  execFileSync("git", ["ls-files", pattern], { cwd: root, encoding: "utf8" }).trim().split("\n");
const read = (file) => readFileSync(join(root, file), "utf8");
const wrong = [];

/** Crates outside of the workspace that are only ever built by tests; their code is searched all the same. */
const WITHOUT_LINT = ["fuzz/Cargo.toml", "pkg-tests/servers/rmcp-client/Cargo.toml"];

const workspace = read("Cargo.toml");
if (!/^\[workspace\.lints\.rust\]$[^[]*^unsafe_code = "forbid"$/m.test(workspace))
  wrong.push('Cargo.toml: [workspace.lints.rust] has no unsafe_code = "forbid"');
for (const file of files("*Cargo.toml")) {
  if (WITHOUT_LINT.includes(file)) continue;
  if (!/^\[lints\]\s+workspace = true$/m.test(read(file)))
    wrong.push(`${file}: it does not take the lints of the workspace`);
}
for (const file of files("*.rs")) {
  for (const [index, line] of read(file).split("\n").entries()) {
    // Words of comments, documentation and texts are no code.
    const code = line.replace(/\/\/.*$/, "").replace(/"(?:\\.|[^"\\])*"/g, '""');
    if (/\bunsafe\b/.test(code)) wrong.push(`${file}:${index + 1}: unsafe code`);
    if (/allow\([^)]*unsafe/.test(code)) wrong.push(`${file}:${index + 1}: it allows unsafe code`);
  }
}
for (const line of wrong) console.error(line);
process.exitCode = wrong.length > 0 ? 1 : 0;
