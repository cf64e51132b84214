// Load on shims: one that is killed in the middle of it, and how much they carry.
import { readdirSync, readFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { connect } from "@nats-io/transport-node";
import { mcp } from "crablet";
import { nats } from "crablet/nats";
import { ledger, startNatsShim } from "./support.mjs";

const CALLS = 1_000;
const AT_ONCE = 48;
const KILL_AFTER = 300;
/** Long beside what the client needs for it, so that every shim has calls at work at any time. */
const TAKES_MS = 200;

/** What a call may fail with when its shim is killed. */
const CLEAR = /no sign of life.*not known/;

/**
 * 1,000 calls over three shims, of which one is killed: each has its right result or a clear error, and none was done twice.
 *
 * @param {{ url: string, where: string }} world
 */
export async function killedUnderLoad({ url, where }) {
  const shims = await startShims(3, { url, where });
  const connection = await connect({ servers: url });
  try {
    const open = (options) => mcp.connect(nats({ connection, silenceMs: 5_000, ...options }));
    const clients = await Promise.all([
      ...[1, 2].map(() => open({ server: "stateless" })),
      ...[1, 2, 3].map(() => open({ server: "handshake", era: "handshake" })),
    ]);
    const outcomes = new Map();
    let killing;
    await work(CALLS, AT_ONCE, async (n) => {
      const call = clients[n % clients.length].callTool("mark", { n, milliseconds: TAKES_MS });
      outcomes.set(
        n,
        await call.then(
          ({ content }) => content[0].text,
          (error) => error,
        ),
      );
      if (outcomes.size === KILL_AFTER) killing = shims[0].kill();
    });
    await killing;
    const done = await ledger(where);
    const times = new Map();
    for (const n of done) times.set(n, (times.get(n) ?? 0) + 1);
    let failed = 0;
    for (const [n, outcome] of outcomes) {
      const count = times.get(n) ?? 0;
      if (count > 1) throw new Error(`call ${n} was done ${count} times`);
      if (outcome instanceof Error) {
        failed += 1;
        if (outcome.kind !== "connection-closed" || !CLEAR.test(outcome.message))
          throw new Error(`call ${n} failed without saying how: ${outcome.message}`);
      } else if (outcome !== `marked ${n}` || count !== 1) {
        throw new Error(`call ${n} has the result ${outcome}, and is ${count} times in the ledger`);
      }
    }
    if (outcomes.size !== CALLS) throw new Error(`${CALLS - outcomes.size} calls have no end`);
    if (failed === 0 || failed > CALLS / 4) throw new Error(`${failed} calls failed of a shim that was killed`);
    await Promise.all(clients.map((client) => client.close()));
    return `${CALLS} calls over 3 shims, one killed: ${CALLS - failed} right results, ${failed} clear errors, none twice`;
  } finally {
    await connection.close();
    for (const shim of shims) await shim.stop();
  }
}

/**
 * How many calls a second so many shims do, and what is busy meanwhile.
 *
 * @param {{ url: string, where: string, shims: number }} world
 */
export async function throughput({ url, where, shims: count }) {
  const shims = await startShims(count, { url, where });
  const connection = await connect({ servers: url });
  try {
    const client = await mcp.connect(nats({ connection, server: "stateless", silenceMs: 30_000 }));
    const call = () => client.callTool("pid", {});
    // Every shim has its process by then.
    await work(50 * count, 32, call);
    const started = family(process.pid);
    const ofName = (name) => started.find((pid) => commandOf(pid).includes(name));
    const processes = { "the nats-server": [ofName("nats-server\0")], "the client": [process.pid] };
    for (const [index] of shims.entries()) {
      processes[`shim ${index + 1} with its server`] = family(ofName(join(where, `shim${index + 1}.json`)));
    }
    const idle = () => machineIdle() / CLOCK_TICKS;
    const used = () => Object.values(processes).map((pids) => pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0));
    const [before, idleBefore, beginning] = [used(), idle(), performance.now()];
    await work(SPEED_CALLS, 128, call);
    const seconds = (performance.now() - beginning) / 1_000;
    const after = used();
    const busy = Object.keys(processes).map((name, index) => [name, (after[index] - before[index]) / seconds]);
    const free = (idle() - idleBefore) / seconds;
    await client.close();
    return `${count} shims: ${Math.round(SPEED_CALLS / seconds)} calls a second; ${saturated(busy, free)}`;
  } finally {
    await connection.close();
    for (const shim of shims) await shim.stop();
  }
}

const SPEED_CALLS = 1_500;

async function startShims(count, { url, where }) {
  const names = Array.from({ length: count }, (_, index) => `shim${index + 1}`);
  return await Promise.all(names.map((name) => startNatsShim({ url, where, name })));
}

/** Does so many pieces of work, so many at once. */
async function work(count, atOnce, piece) {
  let next = 0;
  const worker = async () => {
    while (next < count) {
      next += 1;
      await piece(next);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/** In words: the cores that each has used, and what there was no more of. */
function saturated(busy, free) {
  const shares = busy.map(([name, cores]) => `${name} ${cores.toFixed(2)}`).join(", ");
  const total = busy.reduce((sum, [, cores]) => sum + cores, 0);
  const [name, most] = busy.reduce((one, other) => (other[1] > one[1] ? other : one));
  const others = Math.max(0, cpus().length - free - total);
  let what = "nothing";
  if (most > 0.8) what = name;
  else if (free < 0.1 * cpus().length) what = "the machine";
  return `cores used: ${shares}, others ${others.toFixed(2)}, none ${free.toFixed(2)}; saturated: ${what}`;
}

/** A process and all that it started. */
function family(root) {
  const children = new Map();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(stat(name)?.[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const found = [root];
  for (const pid of found) found.push(...(children.get(pid) ?? []));
  return found;
}

/** The time in which a core had nothing to do, in the unit of /proc. */
function machineIdle() {
  return Number(/^cpu +\d+ \d+ \d+ (\d+)/.exec(readFileSync("/proc/stat", "utf8"))?.[1]);
}

function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

function cpuSeconds(pid) {
  const fields = stat(pid);
  return fields === undefined ? 0 : (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS;
}

/** What Linux tells of a process, from its state on; nothing when it is gone. */
function stat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}

/** The unit of /proc, the same on every Linux that Debian builds for. */
const CLOCK_TICKS = 100;
