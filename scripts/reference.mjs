// Writes the API reference into target/reference/: that of the npm package with TypeDoc, that of the crate with rustdoc. Fails
// when a public item has no documentation or a link leads nowhere.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const reference = join(root, "target/reference");

rmSync(reference, { recursive: true, force: true });
writeJavaScript();
writeRust();
const pages = checkLinks(join(reference, "javascript"));
console.log(`target/reference/javascript (${pages} pages) and target/reference/rust/crablet, without a dead link`);

/** Each entry of the package that has types. */
function writeJavaScript() {
  const { exports } = JSON.parse(readFileSync(join(root, "src/js/package.json"), "utf8"));
  const files = Object.values(exports).flatMap(({ types }) => types ?? []);
  const sources = new Set(files.map((file) => join(root, "src/js", file.replace(/^\.\/types\/(.*)\.d\.ts$/, "$1.ts"))));
  const options = ["--options", join(root, "docs/reference/typedoc.json"), "--logLevel", "Warn"];
  run(join(root, "docs/reference/node_modules/.bin/typedoc"), [...options, ...sources]);
}

/**
 * Missing documentation is a warning of the compiler, and a dead link one of rustdoc. Its pages are not looked through: they
 * repeat what other crates say of their traits, with links that lead nowhere here.
 */
function writeRust() {
  const built = join(root, "target/doc");
  rmSync(built, { recursive: true, force: true });
  // As `make lint` documents it, so that one finds the work of the other done.
  const options = ["--workspace", "--no-deps", "--features", "crablet/tools,crablet/mcp-server"];
  run("cargo", ["doc", "--quiet", ...options], { RUSTDOCFLAGS: "-D warnings" });
  cpSync(built, join(reference, "rust"), { recursive: true });
}

/** Follows every relative link to a file. */
function checkLinks(folder) {
  const dead = [];
  const pages = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".html"));
  for (const page of pages) {
    const text = readFileSync(join(folder, page), "utf8");
    for (const [, link] of text.matchAll(/<a\b[^>]*?\shref="([^"#?]+)[^"]*"/g)) {
      if (/^[a-z]+:/.test(link)) continue;
      if (!existsSync(join(folder, dirname(page), decodeURIComponent(link)))) dead.push(`${page}: ${link}`);
    }
  }
  if (dead.length > 0) throw new Error(`dead links:\n${[...new Set(dead)].join("\n")}`);
  return pages.length;
}

function run(command, args, variables = {}) {
  execFileSync(command, args, {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, ...variables },
  });
}
