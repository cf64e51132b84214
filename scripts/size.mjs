// Prints the bytes of each module and entry of the built package, and of what a user downloads: the first snippet of the
// README, bundled. Marks what exceeds its budget in src/js/size-budgets.json; with `--check` that is a failure.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const built = join(root, "dist/package");
if (!existsSync(join(built, "crablet.wasm"))) {
  console.error("dist/package is missing: run make package first");
  process.exit(2);
}
const require = createRequire(join(root, "src/js/package.json"));
const { build } = await import(pathToFileURL(require.resolve("esbuild")).href);
const budgets = JSON.parse(readFileSync(join(root, "src/js/size-budgets.json"), "utf8"));

const rows = [];
for (const file of readdirSync(built).filter((name) => /\.(js|wasm)$/.test(name))) {
  rows.push(row(file, readFileSync(join(built, file))));
}
rows.push(row("index.js, minified", await bundle(`export * from "crablet"`, { without: "inlined.js" })));
const snippet = /```(?:js|ts|javascript|typescript)\n([\s\S]*?)```/.exec(
  readFileSync(join(root, "README.md"), "utf8"),
)?.[1];
if (snippet !== undefined) {
  rows.push(row("README snippet, bundled", await bundle(snippet)));
  rows.push(
    row(
      "README snippet with crablet/slim, bundled + wasm",
      await bundle(snippet.replaceAll(/"crablet"/g, '"crablet/slim"')),
      readFileSync(join(built, "crablet.wasm")),
    ),
  );
}

const width = Math.max(...rows.map(({ name }) => name.length));
console.log(`${"".padEnd(width)}  ${["raw", "gzip", "brotli", "budget"].map((title) => title.padStart(8)).join("  ")}`);
let failed = 0;
for (const { name, raw, gzip, brotli } of rows) {
  const budget = budgets[name];
  const over = budget !== undefined && brotli > budget;
  if (over) failed += 1;
  const cells = [raw, gzip, brotli, budget ?? ""].map((cell) => String(cell).padStart(8)).join("  ");
  console.log(`${name.padEnd(width)}  ${cells}${over ? "  EXCEEDED" : ""}`);
}
process.exitCode = failed > 0 && process.argv.includes("--check") ? 1 : 0;

/** The bytes of files that are downloaded one by one. */
function row(name, ...files) {
  const sum = (measure) => files.reduce((total, file) => total + measure(Buffer.from(file)), 0);
  return {
    name,
    raw: sum((file) => file.length),
    gzip: sum((file) => gzipSync(file, { level: 9 }).length),
    brotli: sum((file) => brotliCompressSync(file, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }).length),
  };
}

/** A module that uses the package, bundled as a user would. Other packages are left out. */
async function bundle(contents, { without } = {}) {
  const entries = { crablet: "index.js", "crablet/slim": "slim.js" };
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root, loader: "ts" },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    write: false,
    logLevel: "silent",
    plugins: [
      {
        name: "built-package",
        setup(build) {
          build.onResolve({ filter: /.*/ }, ({ path, kind }) => {
            if (kind === "entry-point") return undefined;
            if (path in entries) return { path: join(built, entries[path]) };
            if (without !== undefined && path.endsWith(without)) return { path, external: true };
            return path.startsWith(".") ? undefined : { path, external: true };
          });
        },
      },
    ],
  });
  return outputFiles[0].contents;
}
