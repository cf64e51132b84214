// `make soak MINUTES=n`: conversations and clients of the shim come and go by the hundreds, in Node, in a page and natively,
// before a real shim with real stdio servers, and nothing grows.
//
//   node pkg-tests/soak/run.mjs [--minutes N] [--quick] [--debug] [--seed N]
//
// Needs the packed package in dist/. Values are sampled all the time; the run fails when one is more than a tenth larger at the
// end than after the warm-up, when anything is left once all have gone, or when an error came that no scenario expects.
// `--quick` has fewer lanes, and like `--debug` takes debug builds.
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { startShim, tokenIn } from "../../www/demo/shim.mjs";
import { run } from "../lib/process.mjs";
import { descendants, openFiles } from "../lib/process-tree.mjs";
import { createProject, repository } from "../lib/project.mjs";
import { startNative, startNode, startPage } from "./clients.mjs";
import { verdicts } from "./verdict.mjs";

/** How many lanes each scenario has in each client. */
const LANES = {
  node: {
    ...{ session: 120, aborted: 10, left: 10, forked: 10, saved: 10, stored: 10, broken: 4 },
    ...{ shimAgent: 24, shimCalls: 8, shimDropped: 10, shimReturned: 5, shimGone: 4, http: 10 },
  },
  page: {
    ...{ session: 40, aborted: 5, left: 5, forked: 5, saved: 5, stored: 5, broken: 2 },
    ...{ shimAgent: 10, shimCalls: 4, shimDropped: 5, shimReturned: 3, shimGone: 2, http: 3 },
  },
  native: { session: 60, aborted: 10, forked: 5, saved: 10, shimAgent: 16, shimCalls: 8, shimGone: 4 },
};

/** What `--quick` divides the lanes by. */
const QUICK_PART = 4;

/** Between two samples, in milliseconds. */
const SAMPLE_INTERVAL = 3_000;

/** How long a process of the shim waits for a client that is gone, in seconds. */
const GRACE = 10;

/** How long it may take after the last client until nothing is left, in milliseconds. */
const REST_LIMIT = 40_000;

/** How long the builds may take from nothing, in milliseconds. */
const BUILD_LIMIT = 1_200_000;

/**
 * What is no growth however small a value was: counts go up and down with what the lanes happen to be at, a page of memory is
 * the least that is given, and V8 keeps code and caches of some MiB.
 */
const SLACK = {
  "node heap": 1,
  "node external": 1,
  "node files": 24,
  "page heap": 1,
  "page nodes": 50,
  "native files": 24,
  "shim files": 48,
  "shim sockets": 24,
  "shim processes": 48,
  "a child's memory": 1,
};

/** The part of all lives that may run out of time: another program may have the machine for some seconds. */
const MAX_OUT_OF_TIME = 0.05;

const SERVER = "notes";
const { values: options } = parseArgs({
  options: {
    minutes: { type: "string", default: "5" },
    seed: { type: "string", default: "1" },
    quick: { type: "boolean", default: false },
    debug: { type: "boolean", default: false },
  },
});
const duration = Number(options.minutes) * 60_000;
if (!(duration > 0)) throw new Error(`--minutes ${options.minutes} is no number of minutes`);

const isDebug = options.quick || options.debug;
const binaries = join(repository, "target", isDebug ? "debug" : "release");
const build = ["build", "--quiet", ...(isDebug ? [] : ["--release"])];
for (const what of [
  ["-p", "crablet-shim", "-p", "crablet-soak"],
  ["--example", "mcp_server", "--features", "tools,mcp-server"],
])
  await run("cargo", [...build, ...what], { cwd: repository, timeout: BUILD_LIMIT });

const closing = [];
const failures = [];
/** The clients that have told of an unexpected error. */
const troubled = new Set();
const samples = [];
const clients = {};
let counts = {};
try {
  await soak();
} finally {
  for (const close of closing.reverse()) await close();
}
report();

async function soak() {
  const project = await createProject();
  closing.push(() => project.remove());
  const model = await startModelServer({ delay: 2 });
  closing.push(() => model.close());
  const shim = await startTheShim(project.folder);
  closing.push(() => shim.stop());
  const before = shim.look();

  const share = (lanes) =>
    Object.fromEntries(
      Object.entries(lanes).map(([name, many]) => [name, options.quick ? Math.ceil(many / QUICK_PART) : many]),
    );
  const common = { seed: Number(options.seed), model: model.url };
  const place = { url: shim.url, server: SERVER };
  const front = { url: `${shim.url.replace("ws:", "http:")}/mcp/${SERVER}` };
  const native = { ...place, token: shim.token };
  const nodeFront = { ...front, token: await shim.grant("--native", "--http") };
  clients.node = await startNode(project, { ...common, lanes: share(LANES.node), shim: native, front: nodeFront });
  closing.push(() => clients.node.kill());
  const placesFor = async (origin) => {
    const token = await shim.grant("--origin", origin);
    const http = await shim.grant("--origin", origin, "--http");
    return { shim: { ...place, token }, front: { ...front, token: http } };
  };
  clients.page = await startPage(project, placesFor, { ...common, lanes: share(LANES.page) });
  closing.push(() => clients.page.kill());
  clients.native = await startNative(join(binaries, "crablet-soak"), {
    ...common,
    lanes: share(LANES.native),
    shim: native,
  });
  closing.push(() => clients.native.kill());

  const started = performance.now();
  while (performance.now() - started < duration) {
    await new Promise((resolve) => setTimeout(resolve, SAMPLE_INTERVAL));
    await takeSample((performance.now() - started) / duration, shim);
  }
  const ends = await Promise.all(Object.entries(clients).map(async ([name, client]) => [name, await client.stop()]));
  counts = Object.fromEntries(ends.map(([name, told]) => [name, told.counts]));
  for (const [, told] of ends) failures.push(...told.errors);
  for (const close of closing.splice(-Object.keys(clients).length)) await close();
  await shim.revokeAll();
  await nothingLeft(shim, before);
}

async function takeSample(part, shim) {
  const values = {};
  const told = Object.entries(clients).map(async ([who, client]) => [who, await client.sample()]);
  for (const [who, { values: own, errors }] of await Promise.all(told)) {
    for (const [name, value] of Object.entries(own)) values[`${who} ${name}`] = value;
    if (errors.length > 0 && !troubled.has(who))
      console.log(`the first of errors that are told at the end: ${errors[0]}`);
    if (errors.length > 0) troubled.add(who);
  }
  const { memory, files, sockets, children, childMemory } = shim.look();
  Object.assign(values, { "shim RSS": memory, "shim files": files, "shim sockets": sockets });
  Object.assign(values, { "shim processes": children, "a child's memory": childMemory / Math.max(children, 1) });
  samples.push({ part: Math.min(part, 1), values });
}

/** A shim with a real stdio server, whose folder has a note. */
async function startTheShim(folder) {
  const notes = join(folder, "notes");
  await mkdir(notes);
  await writeFile(join(notes, "note.txt"), "the word is soak\n");
  const binary = join(binaries, "crablet-shim");
  const running = await startShim({
    binary,
    folder,
    name: SERVER,
    server: { command: join(binaries, "examples/mcp_server"), args: [notes] },
    further: ["--grace", String(GRACE)],
    log: () => {},
    onExit: (code) => failures.push(`the shim ended with exit code ${code}`),
  });
  const env = { ...process.env, CRABLET_STATE_DIR: join(folder, "state") };
  const shim = async (...args) => (await promisify(execFile)(binary, args, { env })).stdout;
  const tokens = [running.token];
  return {
    url: running.url,
    token: running.token,
    stop: running.stop,
    async grant(...to) {
      const token = tokenIn(await shim("grant", ...to, "--server", SERVER));
      tokens.push(token);
      return token;
    },
    async revokeAll() {
      for (const token of tokens) await shim("revoke", token.slice(0, token.indexOf(".")));
    },
    /** What it has now. The shim is the child of a guard that ends it with this program. */
    look() {
      const all = descendants(running.pid);
      const own = all.find(({ parent }) => parent === running.pid);
      if (own === undefined) throw new Error("the shim is gone");
      const children = all.filter(({ id }) => id !== own.id && id !== running.pid);
      const childMemory = children.reduce((sum, { memory }) => sum + memory, 0);
      return { memory: own.memory, ...openFiles(own.id), children: children.length, childMemory };
    },
  };
}

/** Waits until the shim has no child and no file open that it had not before its first client. */
async function nothingLeft(shim, before) {
  const deadline = performance.now() + REST_LIMIT;
  let left = shim.look();
  while ((left.children > 0 || left.files > before.files) && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    left = shim.look();
  }
  if (left.children > 0) failures.push(`${left.children} processes of the shim are left when all clients are gone`);
  if (left.files > before.files)
    failures.push(`the shim has ${left.files} files open when all clients are gone; before them ${before.files}`);
}

function report() {
  const kinds = [...new Set(Object.values(counts).flatMap((own) => Object.keys(own)))].sort();
  for (const kind of kinds) {
    const own = Object.entries(counts).map(([who, told]) => `${who} ${told[kind] ?? 0}`);
    console.log(`${kind}: ${own.join(", ")}`);
  }
  const all = (kind) => Object.values(counts).reduce((sum, told) => sum + (told[kind] ?? 0), 0);
  const [lives, late] = [all("lives"), all("lives out of time")];
  if (late > lives * MAX_OUT_OF_TIME) failures.push(`${late} of ${lives + late} lives ran out of time`);
  for (const { name, after, end, grew } of verdicts(samples, SLACK)) {
    console.log(`${name}: ${after.toFixed(1)} after the warm-up, ${end.toFixed(1)} at the end${grew ? ": GREW" : ""}`);
    if (grew) failures.push(`${name} grew from ${after.toFixed(1)} to ${end.toFixed(1)}`);
  }
  for (const failure of failures) console.log(`FAILED ${failure}`);
  console.log(
    `${samples.length} samples in ${options.minutes} minutes: ${failures.length === 0 ? "nothing grew" : "failed"}`,
  );
  process.exitCode = failures.length === 0 ? 0 : 1;
}
