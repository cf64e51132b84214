// Builds the npm package into dist/: the module, the declarations, each entry, the tarball. `--dev` builds the module fast
// and big; `--facade` takes the module of the build before, when nothing changed but JavaScript. `--planted` builds a package for the
// fault harness alone into dist/planted/, whose defects are planted by `globalThis.plantDefect(number)`.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bindingsOf } from "./bindings.mjs";
import { packed } from "./packed.mjs";
import { shortNames } from "./short-names.mjs";
import { build, optimise } from "./wasm.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const source = join(root, "src/js");
const isPlanted = process.argv.includes("--planted");
const isDev = isPlanted || process.argv.includes("--dev");
const dist = join(root, isPlanted ? "dist/planted" : "dist");
const glue = join(dist, "wasm");
const staging = join(dist, "package");
const shipped = join(staging, "crablet.wasm");
const require = createRequire(join(source, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { build: bundle } = await load("esbuild");

const kept = process.argv.includes("--facade") ? readFileSync(shipped) : undefined;
rmSync(staging, { recursive: true, force: true });
mkdirSync(staging, { recursive: true });
const features = isPlanted ? ["planted-defects"] : [];
if (kept === undefined) build({ crate: "src/bindings", folder: glue, name: "crablet", isDev, features });
const short = shortened();
if (kept === undefined) ship(short.module);
else writeFileSync(shipped, kept);
const module = readFileSync(shipped);
await inline(module);
if (!isPlanted) run(join(source, "node_modules/.bin/tsc"), ["--project", source]);
await buildEntries();
writeManifest();
run("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", dist, staging]);

/** The module as wasm-bindgen left it and the glue to `createBindings`, with short names in both. */
function shortened() {
  const built = readFileSync(join(glue, "crablet_bg.wasm"));
  const further = isPlanted ? "globalThis.plantDefect = plant;\n" : "";
  return shortNames(built, bindingsOf(readFileSync(join(glue, "crablet.js"), "utf8"), further));
}

/** Writes the module as it is shipped. */
function ship(module) {
  const short = join(glue, "short.wasm");
  writeFileSync(short, module);
  if (isDev) copyFileSync(short, shipped);
  else optimise(short, shipped, join(root, "dist/crablet.symbols"));
}

/** The module as the text that the default entry unpacks; the form stands in src/js/load/unpack.ts. */
async function inline(module) {
  const { written, text } = packed(module);
  const inlined = { unpacker: unpacker(written, text).toString("base64"), text };
  const unpacking = await bundle({
    entryPoints: [join(source, "load/unpack.ts")],
    bundle: true,
    format: "esm",
    write: false,
  });
  const { unpack } = await import(
    `data:text/javascript;base64,${Buffer.from(unpacking.outputFiles[0].contents).toString("base64")}`
  );
  if (!module.equals(unpack(inlined))) throw new Error("the packed module does not unpack to itself");
  const members = Object.entries(inlined).map(([name, value]) => `  ${name}: "${value}",\n`);
  writeFileSync(
    join(staging, "inlined.js"),
    `// crablet.wasm as text, unpacked by index.js.\nexport const packed = {\n${members.join("")}};\n`,
  );
}

/** The module of src/js/load/unpack.wat for bytes that are written so. */
function unpacker(written, text) {
  const tables = new Array(3 * 128).fill(0);
  for (const [byte, [one, other]] of written.entries()) {
    const place = other === undefined ? one.charCodeAt(0) : 128 * (one.charCodeAt(0) - 124) + other.charCodeAt(0);
    tables[place] = byte;
  }
  const wat = readFileSync(join(source, "load/unpack.wat"), "utf8")
    .replace("PAGES", 1 + Math.ceil(text.length / 65_536))
    .replace("TABLES", tables.map((byte) => `\\${byte.toString(16).padStart(2, "0")}`).join(""));
  const [from, to] = [join(glue, "unpack.wat"), join(glue, "unpack.wasm")];
  writeFileSync(from, wat);
  run(join(source, "node_modules/.bin/wasm-as"), [from, "-o", to]);
  run(join(source, "node_modules/.bin/wasm-opt"), ["-Os", to, "-o", to]);
  return readFileSync(to);
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
    { name: "nats", from: "nats/index.ts", module: "slim" },
    { name: "oauth", from: "oauth/index.ts", module: "slim" },
    { name: "server", from: "server/index.ts", module: "slim" },
    { name: "tools", from: "tools/index.ts", module: "slim" },
    { name: "trace", from: "trace.ts", module: "slim" },
    { name: "ag-ui", from: "ag-ui/index.ts", module: "slim" },
    { name: "agent-service", from: "agent-service/index.ts", module: "slim" },
    { name: "ai-sdk", from: "ai-sdk/index.ts", module: "slim" },
    { name: "chat-completions", from: "chat-completions/index.ts", module: "slim" },
    { name: "local-models", from: "local-models/index.ts", module: "slim" },
    { name: "react", from: "react/index.ts", module: "slim" },
    { name: "ui", from: "ui/index.ts", module: "slim" },
  ];
  for (const { name, from, module } of entries) {
    await bundle({
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
      build.onLoad({ filter: /[\\/]wasm[\\/]crablet\.js$/ }, () => ({ contents: short.glue }));
      build.onResolve({ filter: /^#inlined$/ }, () => ({ path: "./inlined.js", external: true }));
      build.onResolve({ filter: /\.wasm(\?module)?$/ }, ({ path }) => ({ path, external: true }));
    },
  };
}

function writeManifest() {
  const {
    scripts: _scripts,
    devDependencies: _tools,
    ...manifest
  } = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));
  writeFileSync(join(staging, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  for (const file of ["LICENSE-MIT", "LICENSE-APACHE"]) copyFileSync(join(root, file), join(staging, file));
  writeFileSync(join(staging, "README.md"), readmeOf(manifest));
}

/** The README, whose links lead to files that the package does not have: into the repository, or nowhere while none is named. */
function readmeOf({ repository, version }) {
  const address = (repository?.url ?? repository)?.replace(/^git\+|\.git$/g, "");
  return readFileSync(join(root, "README.md"), "utf8").replaceAll(
    /(!?)\[([^\]]*)\]\((?!https?:|#)([^)]*)\)/g,
    (_, image, text, path) =>
      address === undefined
        ? text
        : `${image}[${text}](${address}/${image === "" ? "blob" : "raw"}/v${version}/${path})`,
  );
}

function run(command, args) {
  execFileSync(command, args, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
}
