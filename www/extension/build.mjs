// Builds the extension into a folder that Chrome loads: `node build.mjs [FOLDER]`, `dist` by default.
import { copyFile, mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const folder = resolve(process.argv[2] ?? join(here, "dist"));

await mkdir(folder, { recursive: true });
await build({
  entryPoints: { worker: join(here, "src/worker.ts"), panel: join(here, "src/panel/panel.ts") },
  outdir: folder,
  bundle: true,
  format: "esm",
  target: "chrome123",
  logLevel: "warning",
});
for (const name of ["manifest.json", "panel.html", "panel.css"]) await copyFile(join(here, name), join(folder, name));
