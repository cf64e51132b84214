// Builds the modules that are uploaded into a folder: `node build.mjs [FOLDER]`, `dist` by default.
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));

await build({
  entryPoints: [join(here, "src/worker.ts")],
  outdir: resolve(process.argv[2] ?? join(here, "dist")),
  bundle: true,
  format: "esm",
  target: "es2022",
  // crablet's entry for workerd imports the wasm as a module, which stays a file of its own.
  conditions: ["workerd"],
  loader: { ".wasm": "copy", ".html": "text" },
  assetNames: "[name]",
  external: ["cloudflare:workers"],
  logLevel: "warning",
});
