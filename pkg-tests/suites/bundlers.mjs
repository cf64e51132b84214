// The smoke conversation in the bundles of every bundler, loaded in a real Chromium under a strict policy.
import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { withPage } from "../lib/browser.mjs";
import { freePort, run, startServer } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";
import { expectAnswer, runRows } from "../lib/rows.mjs";
import { serveFolder } from "../lib/servers.mjs";
import { expectedAnswer } from "../smoke/expected.mjs";
import { POLICY } from "./bundler.mjs";

/** The packages of `bundlers/`, which only this suite needs. */
const packages = join(repository, "pkg-tests/bundlers");
const require = createRequire(join(packages, "package.json"));
const vite = join(repository, "pkg-tests/node_modules/vite/bin/vite.js");

export default async function bundlers(project) {
  const model = await startModelServer({ delay: 0 });
  const source = join(project.tests, "fixtures/bundlers");
  const built = (build) => async () => {
    const folder = join(project.folder, `bundle-${build.name}`);
    await mkdir(folder);
    await build(source, folder, join(project.folder, "node_modules/crablet"));
    const site = await serveFolder(folder, { "content-security-policy": await policyFor(folder) });
    try {
      return await askPage(site.url, model.url);
    } finally {
      await site.stop();
    }
  };
  try {
    return await runRows({
      "Vite build": built(viteBuild),
      "Vite dev": () => viteDev(source, model.url),
      webpack: built(webpack),
      Rspack: built(rspack),
      Rollup: built(rollup),
      esbuild: built(esbuild),
      Parcel: built(parcel),
      "Next.js": () => next(project, model.url),
    });
  } finally {
    await model.close();
  }
}

/** The strict policy, and the hashes of the inline scripts that the bundler writes: Parcel's import map is one. */
async function policyFor(folder) {
  const page = await readFile(join(folder, "index.html"), "utf8");
  const hashes = [...page.matchAll(/<script(?![^>]*\ssrc=)[^>]*>(.*?)<\/script>/gs)].map(
    ([, script]) => ` 'sha256-${createHash("sha256").update(script).digest("base64")}'`,
  );
  return POLICY.replace("'wasm-unsafe-eval'", `'wasm-unsafe-eval'${hashes.join("")}`);
}

/** Asks each form of the package that a page has. */
async function askPage(url, modelUrl) {
  return withPage(async (tab) => {
    await tab.goto(url);
    await tab.waitForFunction(() => window.asks !== undefined);
    const forms = await tab.evaluate(() => Object.keys(window.asks));
    for (const form of forms) {
      const answer = await tab.evaluate(([name, given]) => window.asks[name](given), [form, modelUrl]);
      expectAnswer(answer, expectedAnswer, form);
    }
    return `a tool call and a stream: ${forms.join(", ")}`;
  });
}

async function viteBuild(source, folder) {
  const place = ["--outDir", folder, "--emptyOutDir", "--logLevel", "warn"];
  await run(process.execPath, [vite, "build", ...place], { cwd: source });
}

async function viteDev(source, modelUrl) {
  const port = String(await freePort());
  const server = await startServer(process.execPath, [vite, "--host", "127.0.0.1", "--port", port, "--strictPort"], {
    cwd: source,
    env: { NO_COLOR: "1" },
    ready: /http:\/\/127\.0\.0\.1:\d+/,
  });
  try {
    return await askPage(server.match[0], modelUrl);
  } finally {
    await server.stop();
  }
}

async function webpack(source, folder) {
  await pack(require("webpack"), source, folder);
}

async function rspack(source, folder) {
  const { rspack: compile } = await import(require.resolve("@rspack/core"));
  await pack(compile, source, folder);
}

/** Both have one interface. Their bundles are scripts that look for themselves, which modules cannot. */
async function pack(compile, source, folder) {
  const compiler = compile({
    mode: "production",
    context: source,
    entry: "./main.js",
    output: { path: folder, filename: "main.js" },
  });
  const stats = await new Promise((resolve, reject) => {
    compiler.run((error, result) => compiler.close(() => (error ? reject(error) : resolve(result))));
  });
  if (stats.hasErrors()) throw new Error(stats.toString({ all: false, errors: true }));
  const page = await readFile(join(source, "index.html"), "utf8");
  await writeFile(join(folder, "index.html"), page.replace('type="module"', "defer"));
}

/** Rollup and esbuild leave `new URL(…, import.meta.url)` as it is: the worker is an entry, and the wasm is copied. */
async function copyBeside(source, folder, installed) {
  await copyFile(join(source, "index.html"), join(folder, "index.html"));
  await copyFile(join(installed, "crablet.wasm"), join(folder, "crablet.wasm"));
}

async function rollup(source, folder, installed) {
  const { rollup: build } = await import(require.resolve("rollup"));
  const { nodeResolve } = await import(require.resolve("@rollup/plugin-node-resolve"));
  const bundle = await build({
    input: [join(source, "main.js"), join(source, "worker.js")],
    plugins: [nodeResolve({ browser: true })],
  });
  await bundle.write({ dir: folder, format: "esm", chunkFileNames: "[name].js" });
  await bundle.close();
  await copyBeside(source, folder, installed);
}

async function esbuild(source, folder, installed) {
  const { build } = require("esbuild");
  await build({
    entryPoints: [join(source, "main.js"), join(source, "worker.js")],
    outdir: folder,
    bundle: true,
    format: "esm",
    logLevel: "silent",
  });
  await copyBeside(source, folder, installed);
}

async function parcel(source, folder) {
  const program = join(packages, "node_modules/parcel/lib/bin.js");
  const place = ["--dist-dir", folder, "--no-cache", "--no-autoinstall"];
  await run(process.execPath, [program, "build", "index.html", ...place], { cwd: source });
}

/** A page, a route handler in Node and one in the edge runtime, as `next start` serves them. */
async function next(project, modelUrl) {
  const folder = join(project.tests, "fixtures/next");
  const program = join(folder, "node_modules/next/dist/bin/next");
  await symlink(join(packages, "node_modules"), join(folder, "node_modules"), "dir");
  const env = { NEXT_TELEMETRY_DISABLED: "1", NO_COLOR: "1" };
  await run(process.execPath, [program, "build"], { cwd: folder, env, timeout: 240_000 });
  const port = String(await freePort());
  const server = await startServer(process.execPath, [program, "start", "--hostname", "127.0.0.1", "--port", port], {
    cwd: folder,
    env,
    ready: /Ready in/,
  });
  const url = `http://127.0.0.1:${port}`;
  try {
    for (const route of ["node", "edge"]) {
      const response = await fetch(`${url}/api/${route}?model=${encodeURIComponent(modelUrl)}`);
      expectAnswer(await response.text(), expectedAnswer, `${route}: status ${response.status}\n${server.output()}`);
    }
    return `${await askPage(url, modelUrl)}, a route in Node, a route at the edge`;
  } finally {
    await server.stop();
  }
}
