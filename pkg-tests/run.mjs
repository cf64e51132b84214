// Runs suites against the packed tarball of dist/: `node pkg-tests/run.mjs [SUITE...]`, all of them by default. A line per
// suite, then `N passed, N failed`.
import { createProject } from "./lib/project.mjs";
import browser from "./suites/browser.mjs";
import browserCases from "./suites/browser-cases.mjs";
import bundler from "./suites/bundler.mjs";
import bundlers from "./suites/bundlers.mjs";
import cors from "./suites/cors.mjs";
import durable from "./suites/durable.mjs";
import exampleExtension from "./suites/example-extension.mjs";
import examplePrograms from "./suites/example-programs.mjs";
import exampleReact from "./suites/example-react.mjs";
import exampleWorker from "./suites/example-worker.mjs";
import expose from "./suites/expose.mjs";
import files from "./suites/files.mjs";
import firefox from "./suites/firefox.mjs";
import interop from "./suites/interop.mjs";
import handOver from "./suites/hand-over.mjs";
import live from "./suites/live.mjs";
import manifest from "./suites/manifest.mjs";
import nativeMessaging from "./suites/native-messaging.mjs";
import node from "./suites/node.mjs";
import oauth from "./suites/oauth.mjs";
import readme from "./suites/readme.mjs";
import runtimes from "./suites/runtimes.mjs";
import shim from "./suites/shim.mjs";
import types from "./suites/types.mjs";
import workerd from "./suites/workerd.mjs";

/** Each suite gets the project and returns a line about what it saw, or throws. */
const SUITES = {
  manifest,
  types,
  node,
  readme,
  shim,
  workerd,
  browser,
  "browser-cases": browserCases,
  files,
  durable,
  bundler,
  cors,
  oauth,
  "native-messaging": nativeMessaging,
  live,
  expose,
  "example-extension": exampleExtension,
  "example-worker": exampleWorker,
  "example-react": exampleReact,
  "example-programs": examplePrograms,
  "hand-over": handOver,
  runtimes,
  bundlers,
  firefox,
  interop,
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in SUITES));
if (unknown.length > 0) {
  console.error(`unknown suite: ${unknown.join(", ")}. There are: ${Object.keys(SUITES).join(", ")}`);
  process.exit(2);
}

const project = await createProject();
let passed = 0;
let failed = 0;
try {
  for (const [name, suite] of Object.entries(SUITES)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const started = performance.now();
    const seconds = () => `${((performance.now() - started) / 1000).toFixed(1)} s`;
    try {
      const seen = await suite(project);
      passed += 1;
      console.log(`ok ${name} (${seconds()}): ${seen}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name} (${seconds()})\n${error.stack ?? error}`);
    }
  }
} finally {
  await project.remove();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
