// Builds the npm package into dist/: the module, the declarations, each entry, the tarball. `--dev` builds the module fast
// and big, for work on the facade.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { deflateRawSync, inflateRawSync } from "node:zlib";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const source = join(root, "src/js");
const glue = join(root, "dist/wasm");
const staging = join(root, "dist/package");
const isDev = process.argv.includes("--dev");
const require = createRequire(join(source, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { build } = await load("esbuild");

/** Together 3 % of the module: only what is smaller than its call is inlined, and SHA-256, which signs requests, is a loop. */
const forSize = isDev ? [] : ["-Cllvm-args=-inline-threshold=5", '--cfg=sha2_backend_soft="compact"'];

rmSync(staging, { recursive: true, force: true });
mkdirSync(staging, { recursive: true });
const module = buildModule();
await inline(module);
run(join(source, "node_modules/.bin/tsc"), ["--project", source]);
await buildEntries();
writeManifest();
run("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", join(root, "dist"), staging]);

/** The module and the glue of wasm-bindgen. The feature section stays in: wasm-opt reads from it what it may use. */
function buildModule() {
  const profile = isDev ? ["--dev"] : ["--profile", "wasm"];
  run(
    "wasm-pack",
    [
      ...["--log-level", "warn", "build", join(root, "src/bindings"), "--target", "web", "--no-pack", "--no-opt"],
      ...["--mode", "no-install", "--no-gitignore", "--out-dir", glue, "--out-name", "crablet", ...profile],
    ],
    { CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS: [...forSize, ...remappedPaths()].join(" ") },
  );
  const built = join(glue, "crablet_bg.wasm");
  const shipped = join(staging, "crablet.wasm");
  const optimise = ["-Os", "--strip-debug", "--strip-producers", built, "-o", shipped];
  if (isDev) copyFileSync(built, shipped);
  else run(join(source, "node_modules/.bin/wasm-opt"), optimise);
  return readFileSync(shipped);
}

/** The module as the text that the default entry unpacks. Zopfli's deflate is 5 % smaller than zlib's, which is downloaded. */
async function inline(module) {
  const packed = isDev ? deflateRawSync(module, { level: 1 }) : await deflate(module);
  if (!inflateRawSync(packed).equals(module)) throw new Error("the packed module does not unpack to itself");
  writeFileSync(
    join(staging, "inlined.js"),
    `// crablet.wasm as deflate-raw in base64.\nexport const base64 =\n  "${packed.toString("base64")}";\n`,
  );
}

async function deflate(bytes) {
  const { default: zopfli } = await load("@gfx/zopfli");
  return Buffer.from(await zopfli.deflateAsync(bytes, { numiterations: 5 }));
}

/** Panic messages name source files: by names that say nothing of the machine that built them. */
function remappedPaths() {
  const registries = join(process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "registry/src");
  const folders = existsSync(registries) ? readdirSync(registries).map((name) => join(registries, name)) : [];
  return [...folders.map((folder) => `--remap-path-prefix=${folder}=crates`), `--remap-path-prefix=${root}=crablet`];
}

/** One bundle an entry. The entries of the module differ in one file, which says where it comes from. */
async function buildEntries() {
  const entries = [
    { name: "index", from: "index.ts", module: "inline" },
    { name: "index.workerd", from: "index.ts", module: "workerd" },
    { name: "index.edge-light", from: "index.ts", module: "edge-light" },
    { name: "slim", from: "index.ts", module: "slim" },
    { name: "stores", from: "stores/index.ts", module: "slim" },
    { name: "test", from: "test.ts", module: "slim" },
    { name: "models", from: "models.ts", module: "slim" },
    { name: "oauth", from: "oauth/index.ts", module: "slim" },
    { name: "server", from: "server/index.ts", module: "slim" },
    { name: "tools", from: "tools/index.ts", module: "slim" },
    { name: "trace", from: "trace.ts", module: "slim" },
    { name: "ag-ui", from: "ag-ui/index.ts", module: "slim" },
    { name: "ai-sdk", from: "ai-sdk/index.ts", module: "slim" },
    { name: "chat-completions", from: "chat-completions/index.ts", module: "slim" },
    { name: "local-models", from: "local-models/index.ts", module: "slim" },
    { name: "react", from: "react/index.ts", module: "slim" },
    { name: "ui", from: "ui/index.ts", module: "slim" },
  ];
  for (const { name, from, module } of entries) {
    await build({
      entryPoints: [join(source, from)],
      outfile: join(staging, `${name}.js`),
      bundle: true,
      format: "esm",
      target: "es2022",
      platform: "neutral",
      charset: "utf8",
      external: ["react"],
      logLevel: "warning",
      plugins: [resolver(module)],
    });
  }
}

/** What the sources import by a name of their own. */
function resolver(module) {
  const files = {
    "#bindings": join(glue, "crablet.js"),
    "#catalog": join(root, "src/model/catalog.json"),
    "#module": join(source, "load", `${module}.ts`),
  };
  return {
    name: "crablet",
    setup(build) {
      build.onResolve({ filter: /^#(bindings|catalog|module)$/ }, ({ path }) => ({ path: files[path] }));
      build.onLoad({ filter: /[\\/]dist[\\/]wasm[\\/]crablet\.js$/ }, ({ path }) => ({ contents: factory(path) }));
      build.onResolve({ filter: /^#inlined$/ }, () => ({ path: "./inlined.js", external: true }));
      build.onResolve({ filter: /\.wasm(\?module)?$/ }, ({ path }) => ({ path, external: true }));
    },
  };
}

/** The glue as a function: it keeps its instance in variables, and after a trap there must be a second one. */
function factory(path) {
  const glue = readFileSync(path, "utf8")
    .replace(/^export (?=class|function)/gm, "")
    .replace(/^export \{.*\};?$/gm, "");
  const exports = "wasm = instance.exports;";
  if (glue.split(exports).length !== 2 || /^(export|import) /m.test(glue))
    throw new Error("wasm-bindgen writes its glue in another form now: adapt factory() in scripts/package.mjs");
  return `export function createBindings(guard, { setTimeout, clearTimeout }) {
${glue.replace(exports, "wasm = guard(instance.exports);")}
return { AgentHandle, McpHandle, SseHandle, CancelHandle, initialise: __wbg_init, module: () => wasmModule };
}`;
}

function writeManifest() {
  const {
    scripts: _scripts,
    devDependencies: _tools,
    ...manifest
  } = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));
  writeFileSync(join(staging, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  for (const file of ["LICENSE-MIT", "LICENSE-APACHE", "README.md"]) {
    try {
      copyFileSync(join(root, file), join(staging, file));
    } catch (error) {
      if (error.code !== "ENOENT" || file !== "README.md") throw error;
    }
  }
}

function run(command, args, variables = {}) {
  execFileSync(command, args, {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, ...variables },
  });
}
