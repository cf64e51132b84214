// The smoke conversation in every runtime that is not a browser.
import { mkdtemp, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { run } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";
import { newerNode } from "../lib/newer-node.mjs";
import { expectAnswer, runRows } from "../lib/rows.mjs";
import { expectedAnswer } from "../smoke/expected.mjs";
import { askWorkerd } from "./workerd.mjs";

/** The packages of `runtimes/`, which only this suite needs. */
const packages = join(repository, "pkg-tests/runtimes");
const require = createRequire(join(packages, "package.json"));

export default async function runtimes(project) {
  const model = await startModelServer({ delay: 0 });
  try {
    const rows = {};
    for (const [name, program] of Object.entries(nodes())) {
      rows[`${name}, import`] = () => nodeImport(project, program, model.url);
      rows[`${name}, require`] = () => nodeRequire(project, program, model.url);
    }
    rows.Deno = () => deno(project, model.url);
    rows.Bun = () => bun(project, model.url);
    rows.workerd = () => askWorkerd(project, model.url);
    rows["workerd with nodejs_compat"] = () =>
      askWorkerd(project, model.url, `\n  compatibilityFlags = ["nodejs_compat"],`);
    rows.miniflare = () => miniflare(project, model.url);
    rows["edge-runtime"] = () => edgeRuntime(project, model.url);
    return await runRows(rows);
  } finally {
    await model.close();
  }
}

/** The Node that runs this, and newer ones. */
function nodes() {
  return {
    [`Node ${process.versions.node.split(".")[0]}`]: process.execPath,
    "Node 22": newerNode(22),
    "Node 24": newerNode(24),
  };
}

async function nodeImport(project, program, modelUrl) {
  const output = await run(program, await programOf(project, modelUrl), { cwd: project.folder });
  expectAnswer(output.trim(), expectedAnswer);
  return `${(await run(program, ["--version"])).trim()}, stream and store of files`;
}

async function nodeRequire(project, program, modelUrl) {
  const output = await run(program, [join(project.tests, "smoke/program.cjs"), modelUrl], { cwd: project.folder });
  // Some versions warn that require of ESM is young.
  expectAnswer(output.trim().split("\n")[0], expectedAnswer, output);
  return "stream";
}

async function deno(project, modelUrl) {
  const permissions = [`--allow-read=${project.folder}`, `--allow-write=${project.folder}`, "--allow-net=127.0.0.1"];
  const output = await run(
    join(packages, "node_modules/.bin/deno"),
    ["run", "--quiet", "--no-lock", "--no-prompt", ...permissions, ...(await programOf(project, modelUrl))],
    { cwd: project.folder, env: { DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1" } },
  );
  expectAnswer(output.trim(), expectedAnswer);
  return "stream and store of files, with permission for the model's host and one folder";
}

async function bun(project, modelUrl) {
  // The program of the package `bun` only says that a script would have to be run to install it.
  const program = require.resolve(`@oven/bun-${process.platform}-${process.arch}/bin/bun`);
  const output = await run(program, await programOf(project, modelUrl), { cwd: project.folder });
  expectAnswer(output.trim(), expectedAnswer);
  return "stream and store of files";
}

/** The program with its arguments. Each run has a store of its own. */
async function programOf(project, modelUrl) {
  const folder = await mkdtemp(join(project.folder, "sessions-"));
  return [join(project.tests, "smoke/program.mjs"), modelUrl, folder];
}

/** As wrangler does it: a bundle by the condition `workerd`, the wasm as a module beside it. */
async function miniflare(project, modelUrl) {
  const { Miniflare } = require("miniflare");
  const bundle = await bundled(project, {
    entry: join(project.tests, "fixtures/workerd/worker.mjs"),
    conditions: ["workerd", "worker", "browser"],
    format: "esm",
    external: ["*.wasm"],
  });
  const wasm = await readFile(join(project.folder, "node_modules/crablet/crablet.wasm"));
  const host = new Miniflare({
    modules: [
      { type: "ESModule", path: "worker.js", contents: bundle },
      { type: "CompiledWasm", path: "crablet.wasm", contents: wasm },
    ],
    compatibilityDate: "2026-04-01",
  });
  try {
    const response = await host.dispatchFetch(`http://worker.test/?model=${encodeURIComponent(modelUrl)}`);
    expectAnswer(await response.text(), expectedAnswer, `status ${response.status}`);
  } finally {
    await host.dispose();
  }
  return "stream in a handler, bundled by the condition workerd";
}

/** The sandbox of Vercel's edge functions. It takes scripts, so the module that `?module` names is handed in. */
async function edgeRuntime(project, modelUrl) {
  const { EdgeRuntime } = require("edge-runtime");
  const bundle = await bundled(project, {
    entry: join(project.tests, "fixtures/edge-runtime/handler.mjs"),
    conditions: ["edge-light"],
    format: "iife",
    plugins: [wasmByName],
  });
  const bytes = await readFile(join(project.folder, "node_modules/crablet/crablet.wasm"));
  const runtime = new EdgeRuntime({
    initialCode: bundle,
    extend: (context) => Object.assign(context, { WASM_BYTES: new Uint8Array(bytes) }),
  });
  const response = await runtime.dispatchFetch(`http://edge.test/?model=${encodeURIComponent(modelUrl)}`);
  expectAnswer(await response.text(), expectedAnswer, `status ${response.status}`);
  return "stream in a handler, bundled by the condition edge-light";
}

const wasmByName = {
  name: "wasm-module",
  setup(build) {
    build.onResolve({ filter: /\.wasm\?module$/ }, ({ path }) => ({ path, namespace: "wasm-module" }));
    build.onLoad({ filter: /.*/, namespace: "wasm-module" }, () => ({
      contents: "export default new WebAssembly.Module(WASM_BYTES);",
    }));
  },
};

async function bundled(project, { entry, ...options }) {
  const { build } = require("esbuild");
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    logLevel: "silent",
    absWorkingDir: project.folder,
    ...options,
  });
  return outputFiles[0].text;
}
