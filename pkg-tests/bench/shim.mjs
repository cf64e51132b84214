// `make bench-shim`: crablet-shim beside direct stdio, a bare relay and other bridges, in one run.
//
//   node pkg-tests/bench/shim.mjs [--rounds N] [--quick] [--check]
//
// Every round measures each bridge once, and the order rotates, so that noise hits all alike; ratios are taken within a
// round. `--quick` does one small round with debug builds, and only checks the answers. With `--check` a missed target is a
// failure.
import { join } from "node:path";
import { parseArgs } from "node:util";
import { run } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";
import { SERVER, bridgesOf } from "./lib/bridges.mjs";
import { usage } from "../lib/process-tree.mjs";
import { compare, machine, table, targets } from "./lib/report.mjs";
import { ratios, short, spread, summary } from "./lib/statistics.mjs";

const FLOOR = "bare Rust relay";
const DIRECT = "direct stdio";
const OWN = "crablet-shim";

/** What is measured: the length of the text, at most how many calls a round, and how many of them at once. */
const WORK = {
  "200 B, one at a time": { bytes: 200, calls: 1000, atOnce: 1 },
  "200 B, 64 at once": { bytes: 200, calls: 8192, atOnce: 64 },
  "1 MiB, one at a time": { bytes: 2 ** 20, calls: 24, atOnce: 1 },
  "1 MiB, 64 at once": { bytes: 2 ** 20, calls: 64, atOnce: 64 },
};

/** How long a round of one bridge takes at most, in seconds, so that slow ones do not hold up the others. */
const ROUND_SECONDS = 0.5;

/** How long a bridge rests before its idle memory is read, and how long a piece of work may take, in milliseconds. */
const REST = 1_500;
const WORK_LIMIT = 60_000;

/** How long the builds may take from nothing, in milliseconds. */
const BUILD_LIMIT = 1_200_000;

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "15" },
    quick: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    only: { type: "string", multiple: true },
  },
});
const rounds = options.quick ? 1 : Number(options.rounds);
const profile = options.quick ? [] : ["--release"];
await run("cargo", ["build", "--quiet", ...profile, "-p", "crablet-shim", "-p", "crablet-bench"], {
  cwd: repository,
  timeout: BUILD_LIMIT,
});
const bridges = bridgesOf(join(repository, "target", options.quick ? "debug" : "release"));
const names = Object.keys(bridges).filter((name) => !options.only || [DIRECT, FLOOR, ...options.only].includes(name));

const failures = [];
let lastId = 0;
const starts = await measureStarts();
const work = await measureWork(starts.running);
await Promise.all(Object.values(starts.running).map(({ bridge }) => bridge.stop()));
if (options.quick) finish([`${names.length} bridges answered`]);
else await report();

/** From the start of a bridge to the answer to its first call, and the memory of one that rests. */
async function measureStarts() {
  const [times, memory, running] = [byName(), {}, {}];
  for (let round = 0; round < rounds; round += 1) {
    for (const name of rotated(names, round)) {
      try {
        await running[name]?.bridge.stop();
        const before = performance.now();
        const bridge = await bridges[name].start();
        const client = await bridge.connect();
        await call(client, 1);
        times[name].push(performance.now() - (bridge.startedAt ?? before));
        running[name] = { bridge, client };
      } catch (error) {
        failures.push(`${name} did not start: ${error.message}`);
      }
    }
  }
  if (!options.quick) await new Promise((resolve) => setTimeout(resolve, REST));
  for (const [name, { bridge }] of Object.entries(running)) memory[name] = usage(bridge.pid, SERVER).memory;
  return { times, memory, running };
}

async function measureWork(running) {
  const results = {};
  for (const [title, work] of Object.entries(WORK)) {
    const result = { latency: byName(), seconds: byName(), cpu: byName(), errors: {} };
    results[title] = result;
    const calls = {};
    // The first round warms up and finds out how many calls fit into a round.
    for (let round = options.quick ? 0 : -1; round < rounds; round += 1) {
      for (const name of rotated(Object.keys(running), Math.max(round, 0)).filter((name) => !(name in result.errors))) {
        const { bridge, client } = running[name];
        try {
          const count = calls[name] ?? Math.max(work.atOnce, Math.ceil(work.calls / 32));
          const cpuBefore = usage(bridge.pid, SERVER).cpu;
          const before = performance.now();
          const times = await withLimit(callMany(client, work.bytes, count, work.atOnce));
          const seconds = (performance.now() - before) / 1000 / count;
          if (!options.quick)
            calls[name] ??= Math.max(work.atOnce, Math.min(work.calls, Math.round(ROUND_SECONDS / seconds)));
          if (round < 0) continue;
          result.latency[name].push(summary(times).median);
          result.seconds[name].push(seconds);
          result.cpu[name].push(((usage(bridge.pid, SERVER).cpu - cpuBefore) * 1000) / count);
        } catch (error) {
          // What a peer cannot do is a result; what the shim cannot do is a failure.
          result.errors[name] = error.message.replace(/<[^>]*>|\s+/g, " ").slice(0, 60);
          if ([OWN, DIRECT, FLOOR].includes(name)) failures.push(`${name}, ${title}: ${error.message}`);
        }
      }
    }
  }
  return results;
}

/**
 * So many echoes, so many of them at once.
 *
 * @returns {Promise<number[]>} the time of each, in milliseconds
 */
async function callMany(client, bytes, calls, atOnce) {
  let left = calls;
  const times = [];
  const caller = async () => {
    while (left > 0) {
      left -= 1;
      const before = performance.now();
      await call(client, bytes);
      times.push(performance.now() - before);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, caller));
  return times;
}

/** An echo of a text of so many bytes, checked. */
async function call(client, bytes) {
  lastId += 1;
  const text = "x".repeat(bytes);
  const params = { name: "echo", arguments: { text } };
  const reply = await client.request({ jsonrpc: "2.0", id: lastId, method: "tools/call", params });
  if (reply?.result?.content?.[0]?.text !== text) {
    throw new Error(`a wrong answer: ${JSON.stringify(reply).slice(0, 200)}`);
  }
}

async function report() {
  const versions = await Promise.all(
    names.map(async (name) => [name, await bridges[name].version()].filter(Boolean).join(" ")),
  );
  const measured = {
    "start, ms": summary(starts.times[OWN]).median,
    "idle memory, MiB": starts.memory[OWN],
  };
  console.log(`${machine()}; ${rounds} rounds; ${versions.join(", ")}\n`);
  const startRows = Object.keys(starts.running).map((name) => [
    name,
    spread(summary(starts.times[name])),
    short(Math.min(...starts.times[name])),
    short(starts.memory[name]),
  ]);
  console.log(`${table(["start to first answer", "ms", "fastest", "idle MiB"], startRows)}\n`);
  for (const [title, { latency, seconds, cpu, errors }] of Object.entries(work)) {
    const direct = summary(latency[DIRECT]).median;
    const rows = Object.keys(starts.running).map((name) => {
      if (name in errors) return [name, errors[name], "", "", "", "", ""];
      const [slower, longer] = [ratios(latency[name], latency[FLOOR]), ratios(seconds[name], seconds[FLOOR])];
      if (name === OWN) {
        measured[`latency, ${title}`] = slower.median;
        measured[`time a call, ${title}`] = longer.median;
      }
      const median = summary(latency[name]).median;
      return [
        name,
        short(median),
        short(median - direct),
        spread(slower),
        short(1 / summary(seconds[name]).median),
        spread(longer),
        short(summary(cpu[name]).median),
      ];
    });
    const heads = [
      title,
      "latency, ms",
      "added, ms",
      "latency / relay",
      "calls/s",
      "time a call / relay",
      "CPU, µs a call",
    ];
    console.log(`${table(heads, rows)}\n`);
  }
  finish(compare(targets.shim, measured));
}

function finish(lines) {
  for (const line of lines) console.log(line);
  for (const failure of failures) console.error(`FAILED ${failure}`);
  const isMissed = options.check && lines.some((line) => line.startsWith("MISSED"));
  process.exit(failures.length > 0 || isMissed ? 1 : 0);
}

function withLimit(promise) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${WORK_LIMIT / 1000} s`)), WORK_LIMIT);
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

function byName() {
  return Object.fromEntries(names.map((name) => [name, []]));
}

function rotated(list, by) {
  const at = by % list.length;
  return [...list.slice(at), ...list.slice(0, at)];
}
