// Runs the official MCP conformance suite, in both of its lines, against both builds of the client: the packed npm package
// (wasm in Node) and the native example; and against the server: the package's and the native one over HTTP, and the native one
// behind the shim's HTTP front. Prints the suite's own output as it is, after a line that says which run it is.
//
//   node scripts/conformance.mjs [package|native|server] [ARGUMENTS OF THE SUITE…]
//
// Without arguments of the suite all its sets are run. What is known to fail is in pkg-tests/conformance/expected-*.yml; a
// scenario that fails and is not there fails the run, and so does one that is there and passes.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { startServer } from "./conformance-server.mjs";
import { startProgram } from "./start-program.mjs";
import { unpackPackage } from "./unpack-package.mjs";

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

/** The sets for the server. The earlier line knows no set of a revision. */
const SERVER_LINES = {
  0.2: [
    ["--requirements", "2025-11-25"],
    ["--requirements", "2026-07-28"],
  ],
  0.1: [["--suite", "active"]],
};

/** What the server speaks: with the shim in front, callers of both eras are served in any case. */
const SERVER_ERAS = ["stateless", "handshake"];

const given = process.argv.slice(2);
const wanted = [...Object.keys(BUILDS), "server"].includes(given[0])
  ? [given.shift()]
  : [...Object.keys(BUILDS), "server"];
let failed = 0;
let ran = 0;
for (const build of wanted.filter((build) => build in BUILDS)) {
  const command = BUILDS[build]();
  for (const [line, sets] of Object.entries(LINES)) {
    for (const set of given.length > 0 ? [given] : sets) {
      ran += 1;
      console.log(`\n== conformance ${line}, ${set.join(" ")}, ${build} build ==`);
      if (!runSuite(line, command, set)) failed += 1;
    }
  }
}
if (wanted.includes("server")) await runServer();
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

async function runServer() {
  const built = buildExample("conformance_server", "mcp-server");
  const example = join(built, "examples/conformance_server");
  execFileSync("cargo", ["build", "--quiet", "--package", "crablet-shim"], { cwd: root, stdio: "inherit" });
  preparePackage();
  const program = join(folder, "server.mjs");
  await runServerSets("server of the package over HTTP", "package", await startProgram(process.execPath, [program]));
  await runServerSets("native server over HTTP", "native", await startProgram(example, ["http"]));
  for (const era of SERVER_ERAS) {
    const server = await startServer(join(built, "crablet-shim"), [example, era]);
    await runServerSets(`server of the ${era} era behind the shim`, era, server);
  }
}

async function runServerSets(what, name, server) {
  try {
    for (const [line, sets] of Object.entries(SERVER_LINES)) {
      for (const set of given.length > 0 ? [given] : sets) {
        ran += 1;
        console.log(`\n== conformance ${line}, ${set.join(" ")}, ${what} ==`);
        if (!(await runServerSuite(line, server.url, name, set))) failed += 1;
      }
    }
  } finally {
    await server.stop();
  }
}

/** Beside the relay, which runs in this process: so not as `spawnSync`. */
async function runServerSuite(line, url, name, set) {
  const suite = join(folder, `node_modules/conformance-${line}/dist/index.js`);
  const baseline = join(folder, `expected-server-${name}-${set.at(-1)}.yml`);
  const expected = existsSync(baseline) ? ["--expected-failures", baseline] : [];
  const command = [suite, "server", "--url", url, ...set, ...expected];
  const run = spawn(suiteNode(), command, { cwd: join(root, "target"), stdio: ["ignore", "inherit", "inherit"] });
  return (await new Promise((ended) => run.once("exit", ended))) === 0;
}

/** The suite needs Node 22; the clients run on the Node that runs this. */
function suiteNode() {
  return Number(process.versions.node.split(".")[0]) >= 22
    ? process.execPath
    : join(folder, "node_modules/node/bin/node");
}

function preparePackage() {
  unpackPackage(folder);
  return `"${process.execPath}" "${join(folder, "client.mjs")}"`;
}

function prepareNative() {
  return `"${join(buildExample("conformance_client"), "examples/conformance_client")}"`;
}

/** Builds an example; gives cargo's folder of debug builds. */
function buildExample(name, ...features) {
  const chosen = features.length > 0 ? ["--features", features.join()] : [];
  execFileSync("cargo", ["build", "--quiet", "--example", name, ...chosen], { cwd: root, stdio: "inherit" });
  const { target_directory: built } = JSON.parse(
    execFileSync("cargo", ["metadata", "--format-version", "1", "--no-deps"], {
      cwd: root,
      maxBuffer: 64 * 1024 * 1024,
    }),
  );
  return join(built, "debug");
}
