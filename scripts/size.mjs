// Prints the bytes of each module and entry of the built package, and of what a user downloads: the first snippet of the
// README, bundled; of a Rust program with one provider, if scripts/one-provider.mjs has built it; then the bytes of each part of
// these modules. src/js/size-budgets.json names for each figure a target, where it is to come, and a ceiling, which it may not
// pass any more. With `--check` passing a ceiling is a failure; `--lower` writes ceilings 1 % above the figures that are below
// them.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { number, sectionsOf } from "./short-names.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const built = join(root, "dist/package");
if (!existsSync(join(built, "crablet.wasm"))) {
  console.error("dist/package is missing: run make package first");
  process.exit(2);
}
const require = createRequire(join(root, "src/js/package.json"));
const { build } = await import(pathToFileURL(require.resolve("esbuild")).href);
const budgetsFile = join(root, "src/js/size-budgets.json");
const budgets = JSON.parse(readFileSync(budgetsFile, "utf8"));

const [CODE, DATA] = [10, 11];
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

const oneProvider = join(root, "dist/one-provider.wasm");
if (existsSync(oneProvider)) rows.push(row("Rust, one provider", readFileSync(oneProvider)));

let failed = 0;
const table = rows.map(({ name, raw, gzip, brotli }) => {
  const { target, ceiling } = budgets[name] ?? {};
  const isOver = ceiling !== undefined && brotli > ceiling;
  if (isOver) failed += 1;
  const remark = isOver ? "ABOVE THE CEILING" : target !== undefined && brotli > target ? "above the target" : "";
  return [name, raw, gzip, brotli, target ?? "", ceiling ?? "", remark];
});
print(["", "raw", "gzip", "brotli", "target", "ceiling", ""], table);
if (process.argv.includes("--lower")) {
  for (const { name, brotli } of rows.filter(({ name }) => name in budgets)) {
    budgets[name].ceiling = Math.min(budgets[name].ceiling, Math.ceil(brotli * 1.01));
  }
  writeFileSync(budgetsFile, `${JSON.stringify(budgets, null, 2)}\n`);
}
const modules = [
  ["crablet.wasm", join(built, "crablet.wasm"), join(root, "dist/crablet.symbols")],
  ["one-provider.wasm", oneProvider, join(root, "dist/one-provider.symbols")],
];
for (const [name, module, symbols] of modules.filter((files) => files.slice(1).every(existsSync))) {
  console.log();
  const parts = partsOf(readFileSync(module), readFileSync(symbols, "utf8"));
  print([`part of ${name}`, "raw", "brotli", "functions"], parts);
}
process.exitCode = failed > 0 && process.argv.includes("--check") ? 1 : 0;

function print(titles, lines) {
  const widths = titles.map((title, column) =>
    Math.max(title.length, ...lines.map((cells) => `${cells[column]}`.length)),
  );
  for (const cells of [titles, ...lines]) {
    const padded = cells.map((cell, column) =>
      typeof cell === "number" || (cells === titles && column > 0)
        ? `${cell}`.padStart(widths[column])
        : `${cell}`.padEnd(widths[column]),
    );
    console.log(padded.join("  ").trimEnd());
  }
}

/** The functions of a module by the part of the source that they are of, largest first. A part's brotli is of its code alone. */
function partsOf(module, symbols) {
  const names = new Map();
  for (const line of symbols.trim().split("\n")) {
    const colon = line.indexOf(":");
    names.set(Number(line.slice(0, colon)), line.slice(colon + 1));
  }
  const { imported, bodies, data } = piecesOf(module);
  const parts = new Map([["data", [data]]]);
  for (const [index, body] of bodies.entries()) {
    const part = partOf(names.get(imported + index) ?? "");
    parts.set(part, [...(parts.get(part) ?? []), body]);
  }
  const lines = [...parts].map(([part, pieces]) => {
    const { raw, brotli } = row(part, Buffer.concat(pieces));
    return [part, raw, brotli, part === "data" ? "" : pieces.length];
  });
  return lines.sort((one, other) => other[1] - one[1]);
}

/** The number of imported functions, the bodies of the others and the data. */
function piecesOf(module) {
  const imports = WebAssembly.Module.imports(new WebAssembly.Module(module));
  const found = {
    imported: imports.filter(({ kind }) => kind === "function").length,
    bodies: [],
    data: Buffer.alloc(0),
  };
  for (const { id, content } of sectionsOf(module)) {
    if (id === DATA) found.data = content;
    if (id !== CODE) continue;
    const count = number(content, 0);
    for (let [left, at] = [count.value, count.end]; left > 0; left--) {
      const size = number(content, at);
      const end = size.end + size.value;
      found.bodies.push(content.subarray(at, end));
      at = end;
    }
  }
  return found;
}

/** The module of this project that a function is of, or made for, such as `model::anthropic`; else its crate. */
function partOf(name) {
  const path = name.replaceAll(/\[[0-9a-f]+\]/g, "");
  if (/drop_in_place|drop_slow/.test(path)) return "dropping values";
  if (/crablet_bindings::|^[a-z]+handle_/.test(path)) return "bindings";
  const own = /\bcrablet::([a-z_0-9]+)(?:::([a-z_0-9]+)(?=::))?/.exec(path);
  if (own !== null) return own[1] === "agent" || own[2] === undefined ? own[1] : `${own[1]}::${own[2]}`;
  const crate = /([a-z][a-z_0-9]*)::/.exec(path);
  return crate === null ? "others" : `the crate ${crate[1]}`;
}

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
