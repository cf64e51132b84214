// Runs the official MCP conformance suite, in both of its lines, against both builds of the client: the packed npm package
// (wasm in Node) and the native example. Prints the suite's own output as it is, after a line that says which run it is.
//
//   node scripts/conformance.mjs [package|native] [ARGUMENTS OF THE SUITE…]
//
// Without arguments of the suite all its sets are run. What is known to fail is in pkg-tests/conformance/expected-*.yml; a
// scenario that fails and is not there fails the run, and so does one that is there and passes.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const folder = join(root, "pkg-tests/conformance");

/** The lines of the suite, and the sets of scenarios to run of each. */
const LINES = {
  0.2: [
    ["--requirements", "2025-11-25"],
    ["--requirements", "2026-07-28"],
    ["--suite", "all"],
  ],
  0.1: [["--suite", "all"]],
};

/** The longest a client may take, in milliseconds. The suite starts some forty at once, which a busy machine needs long for. */
const CLIENT_LIMIT = 120_000;

/** Scenarios that hold a client to a time in milliseconds. */
const MEASURED = ["sse-retry"];

/** The builds, and how the suite starts the client of each. */
const BUILDS = { package: preparePackage, native: prepareNative };

const given = process.argv.slice(2);
const wanted = given[0] in BUILDS ? [given.shift()] : Object.keys(BUILDS);
let failed = 0;
let ran = 0;
for (const build of wanted) {
  const command = BUILDS[build]();
  for (const [line, sets] of Object.entries(LINES)) {
    for (const set of given.length > 0 ? [given] : sets) {
      ran += 1;
      console.log(`\n== conformance ${line}, ${set.join(" ")}, ${build} build ==`);
      if (!runSuite(line, command, set)) failed += 1;
    }
  }
}
console.log(`\n${ran - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function runSuite(line, command, set) {
  const { status, output } = startSuite(line, command, set);
  if (status === 0) return true;
  const unexpected = /Unexpected failures[^\n]*\n((?: *✗ [^\n]*\n)+)/.exec(output)?.[1].match(/(?<=✗ )\S+/g) ?? [];
  // On a machine that starts forty clients at once, the suite measures the machine.
  if (unexpected.length === 0 || !unexpected.every((scenario) => MEASURED.includes(scenario))) return false;
  return unexpected.every((scenario) => {
    console.log(`\n== again without the others, since it measures time: ${scenario} ==`);
    return startSuite(line, command, ["--scenario", scenario]).status === 0;
  });
}

/** Prints what the suite prints, and gives it too. */
function startSuite(line, command, set) {
  const suite = join(folder, `node_modules/conformance-${line}/dist/index.js`);
  const baseline = join(folder, `expected-${line}.yml`);
  const expected = existsSync(baseline) && !set.includes("--scenario") ? ["--expected-failures", baseline] : [];
  const limits = ["--timeout", String(CLIENT_LIMIT)];
  const { status, stdout } = spawnSync(
    suiteNode(),
    [suite, "client", "--command", command, ...limits, ...set, ...expected],
    { cwd: join(root, "target"), stdio: ["ignore", "pipe", "inherit"], maxBuffer: 64 * 1024 * 1024 },
  );
  process.stdout.write(stdout);
  return { status, output: stripVTControlCharacters(String(stdout)) };
}

/** The suite needs Node 22; the clients run on the Node that runs this. */
function suiteNode() {
  return Number(process.versions.node.split(".")[0]) >= 22
    ? process.execPath
    : join(folder, "node_modules/node/bin/node");
}

/** Unpacks the packed tarball where the client imports it from, as npm would. */
function preparePackage() {
  const tarball = readdirSync(join(root, "dist")).find((name) => /^crablet-.*\.tgz$/.test(name));
  if (tarball === undefined) throw new Error("there is no tarball in dist/: run make package first");
  const target = join(folder, "node_modules/crablet");
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  execFileSync("tar", ["-xzf", join(root, "dist", tarball), "-C", target, "--strip-components=1"]);
  return `"${process.execPath}" "${join(folder, "client.mjs")}"`;
}

function prepareNative() {
  execFileSync("cargo", ["build", "--quiet", "--example", "conformance_client"], { cwd: root, stdio: "inherit" });
  const { target_directory: built } = JSON.parse(
    execFileSync("cargo", ["metadata", "--format-version", "1", "--no-deps"], {
      cwd: root,
      maxBuffer: 64 * 1024 * 1024,
    }),
  );
  return `"${join(built, "debug/examples/conformance_client")}"`;
}
