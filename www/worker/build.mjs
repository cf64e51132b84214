// Builds the modules that are uploaded into a folder: `node build.mjs [FOLDER]`, `dist` by default.
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const folder = resolve(process.argv[2] ?? join(here, "dist"));

const shared = { bundle: true, format: "esm", target: "es2022", logLevel: "warning" };

// The script of the page, a text that the worker hands out.
await build({
  ...shared,
  entryPoints: [join(here, "page/holder.ts")],
  outfile: join(folder, "holder.txt"),
  minify: true,
});

await build({
  ...shared,
  entryPoints: [join(here, "src/worker.ts")],
  outdir: folder,
  // crablet's entry for workerd imports the wasm as a module, which stays a file of its own.
  conditions: ["workerd"],
  loader: { ".wasm": "copy", ".html": "text" },
  assetNames: "[name]",
  external: ["cloudflare:workers", "./holder.txt"],
});
