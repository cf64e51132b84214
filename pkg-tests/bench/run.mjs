// `make bench`: the packed crablet beside what a user would pick instead, in one run.
//
//   node pkg-tests/bench/run.mjs [AREA...] [--rounds N] [--only ADAPTER]... [--quick] [--check]
//
// The areas are sse, provider, agent, mcp, memory, sizing, pages and startup; the shim has `make bench-shim`. In every area an
// adapter `raw` is the floor: what a person writes by hand. `--quick` runs each adapter once on little work and only checks
// the answers. With `--check` a missed target is a failure.
import { execFile } from "node:child_process";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { repository } from "../lib/project.mjs";
import { compare, machine, table, targets } from "./lib/report.mjs";
import { startServer } from "./lib/servers.mjs";
import { short, spread } from "./lib/statistics.mjs";

const OWN = "crablet";
const folder = join(repository, "pkg-tests/bench");

/** Idle sessions whose memory is measured. */
const SESSIONS = 500;

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "9" },
    quick: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    only: { type: "string", multiple: true },
  },
});
const given = { rounds: options.quick ? 1 : Number(options.rounds), isQuick: options.quick, only: options.only };

/** Each gives its tables: a title, and a row for each adapter. */
const areas = {
  sse: () => runInWorkers("sse"),
  provider: () => runInWorkers("provider", "model"),
  agent: () => runInWorkers("agent", "model"),
  mcp: () => runInWorkers("mcp", "mcp"),
  memory: measureMemory,
  sizing: measureSizing,
  pages: async () => (await import("./lib/pages.mjs")).measureProviderInPage(given),
  startup: async () => (await import("./lib/pages.mjs")).measureStartUp(given),
};

const wanted = positionals.length > 0 ? positionals : Object.keys(areas);
const unknown = wanted.filter((name) => !(name in areas));
if (unknown.length > 0) {
  console.error(`unknown area: ${unknown.join(", ")}. There are: ${Object.keys(areas).join(", ")}`);
  process.exit(2);
}

await installTarball();
if (!options.quick) console.log(`${machine()}; ${given.rounds} rounds; ${await versions()}\n`);
const measured = {};
const failures = [];
for (const name of wanted) {
  for (const { title, rows } of await areas[name]()) {
    if (!options.quick) console.log(`${tableOf(title, rows)}\n`);
    for (const { name: adapter, error, ratio, each } of rows) {
      if (error !== undefined && (options.quick || adapter === OWN)) failures.push(`${title}, ${adapter}: ${error}`);
      if (adapter === OWN && error === undefined) measured[title] = ratio?.median ?? each;
    }
  }
}
const lines = options.quick
  ? []
  : compare(targets.package, measured).filter((line) => !line.startsWith("not measured"));
for (const line of lines) console.log(line);
for (const failure of failures) console.error(`FAILED ${failure}`);
if (options.quick) console.log(`${wanted.length} areas ran, ${failures.length} failures`);
const isMissed = options.check && lines.some((line) => line.startsWith("MISSED"));
process.exit(failures.length > 0 || isMissed ? 1 : 0);

/** Puts what `make package` packed where the adapters find it. */
async function installTarball() {
  const { version } = JSON.parse(await readFile(join(repository, "src/js/package.json"), "utf8"));
  const target = join(folder, "node_modules/crablet");
  await rm(target, { recursive: true, force: true });
  await mkdir(target, { recursive: true });
  const tarball = join(repository, "dist", `crablet-${version}.tgz`);
  await promisify(execFile)("tar", ["-xzf", tarball, "-C", target, "--strip-components=1"]);
}

async function runInWorkers(area, serverName) {
  const { runArea } = await import("./lib/workers.mjs");
  const server = serverName && (await startServer(serverName));
  try {
    return await runArea(area, { port: server?.port, ...given });
  } finally {
    server?.stop();
  }
}

async function measureMemory() {
  const { bytes, history } = await measureSessions("memory.mjs");
  const rows = [{ name: OWN, each: (bytes - history) / 1024, unit: "KiB beyond its history" }];
  return [{ title: "memory of an idle session", rows }];
}

async function measureSizing() {
  const { atWork, history, cpu, writes, bytes } = await measureSessions("sizing.mjs");
  const row = (each, unit) => ({ name: OWN, each, unit });
  return [
    { title: "a session at work in four tools", rows: [row((atWork - history) / 1024, "KiB beyond its history")] },
    { title: "a step, CPU", rows: [row(cpu, "ms of CPU")] },
    { title: "a step, writes", rows: [row(writes, "writes of the store")] },
    { title: "a step, bytes", rows: [row(bytes / 1024, "KiB written")] },
  ];
}

/** What a program of this folder says that has a model and many sessions. */
async function measureSessions(program) {
  const server = await startServer("model");
  try {
    const count = options.quick ? 5 : SESSIONS;
    const args = ["--expose-gc", join(folder, program), `http://127.0.0.1:${server.port}/openai`, String(count)];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    return JSON.parse(stdout);
  } finally {
    server.stop();
  }
}

function tableOf(title, rows) {
  const cells = [...rows]
    .sort((one, other) => (one.ratio?.median ?? Infinity) - (other.ratio?.median ?? Infinity))
    .map(({ name, error, ratio, wallRatio, each, unit }) => {
      if (error !== undefined) return [name, error, "", ""];
      return [name, ratio ? spread(ratio) : "", wallRatio ? spread(wallRatio) : "", `${short(each)} ${unit}`];
    });
  return table([title, "CPU / raw", "wall / raw", "median"], cells);
}

async function versions() {
  const { devDependencies } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const peers = Object.entries(devDependencies).map(([name, version]) => `${name} ${version}`);
  const { version } = JSON.parse(await readFile(join(folder, "node_modules/crablet/package.json"), "utf8"));
  return [`crablet ${version}`, ...peers].join(", ");
}
