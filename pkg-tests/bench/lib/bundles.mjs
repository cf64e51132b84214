// Minified bundles for a page, as a user's bundler makes them.
import { mkdir, readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import { build } from "esbuild";

/**
 * Bundles a module with all that it imports.
 *
 * @param {string} source
 * @param {string} folder where the bundle goes, as index.js beside what it loads later
 * @returns {Promise<number>} the brotli bytes of what is loaded at once
 */
export async function bundle(source, folder) {
  await mkdir(folder, { recursive: true });
  const { metafile } = await build({
    entryPoints: { index: source },
    outdir: folder,
    bundle: true,
    minify: true,
    splitting: true,
    metafile: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    mainFields: ["browser", "module", "main"],
    legalComments: "none",
    logLevel: "error",
    define: { "process.env.NODE_ENV": '"production"' },
    plugins: [withoutNode],
  });
  const { outputs } = metafile;
  const entry = Object.keys(outputs).find((path) => outputs[path].entryPoint !== undefined);
  const loaded = new Set([entry]);
  for (const path of loaded) {
    for (const { path: imported, kind } of outputs[path].imports) {
      if (kind === "import-statement" && outputs[imported]) loaded.add(imported);
    }
  }
  const files = await Promise.all([...loaded].map((path) => readFile(path)));
  return brotli(Buffer.concat(files));
}

/** The names of the modules in a folder, without their extension. */
export async function modulesIn(folder) {
  return (await readdir(folder)).filter((file) => file.endsWith(".mjs")).map((file) => file.slice(0, -4));
}

export function moduleFile(folder, name) {
  return join(folder, `${name}.mjs`);
}

/** Some packages import modules of Node behind a check that is false in a page. */
const withoutNode = {
  name: "without-node",
  setup(build) {
    const names =
      "async_hooks|buffer|child_process|crypto|events|fs|http|https|module|net|os|path|process|stream|tls|url|util|zlib";
    build.onResolve({ filter: new RegExp(`^(node:|(${names})(/|$))`) }, ({ path }) => ({ path, namespace: "node" }));
    build.onLoad({ filter: /.*/, namespace: "node" }, () => ({
      contents:
        "module.exports = new Proxy(class {}, { get: (_, name) => (name === '__esModule' ? false : class {}) });",
    }));
  },
};

function brotli(bytes) {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  return brotliCompressSync(bytes, { params }).length;
}
