// What the soak does with crablet, in every runtime alike: lanes that each go through one scenario after the other, many at
// once. A lane keeps what it opened last, so that hundreds of conversations and clients are open at any moment.
import { SCENARIOS } from "./scenarios.mjs";

/** Unexpected errors that are told in full; the others are counted. */
const MAX_ERRORS_TOLD = 10;

/**
 * Kinds of errors that come when a machine has more to do than it can: a shim that does not answer in time, a process that is
 * ended since its client was not back within the grace, an idle HTTP connection that is used just when it is closed. How many
 * may be is for run.mjs to say.
 */
const OUT_OF_TIME = ["network", "timeout", "connection-closed"];

/** How long a lane rests between two scenarios, at most, in milliseconds: people read what they asked for. */
const MAX_REST = 3_000;

/**
 * Starts the lanes.
 *
 * @param {{ lanes: Record<string, number>, seed: number, model: string, shim?: { url: string, token: string, server: string }, front?: { url: string, token: string } }} given
 *   how many lanes each scenario has, and where model and shim are
 * @returns {{ counts: Record<string, number>, errors: string[], stop: () => Promise<void> }} `stop` lets every lane end its
 *   scenario and close what it keeps
 */
export function startChurn(given) {
  const counts = {};
  const errors = [];
  const count = (what, by = 1) => {
    counts[what] = (counts[what] ?? 0) + by;
  };
  let stopped = false;
  /** What ends the rest of each lane that rests. A race with one promise for all would keep something for each rest. */
  const resting = new Set();
  const rest = (milliseconds) =>
    new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        resting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, milliseconds);
      resting.add(wake);
    });
  const unexpected = (name, error) => {
    if (OUT_OF_TIME.includes(error?.kind)) {
      count("lives out of time");
      return;
    }
    count("unexpected errors");
    if (errors.length < MAX_ERRORS_TOLD) errors.push(`${name}: ${error?.kind ?? ""} ${error?.stack ?? error}`);
  };

  async function lane(name, number) {
    const random = randomOf(given.seed + number);
    const context = { ...given, count, random, isStopped: () => stopped };
    let close = async () => {};
    while (!stopped) {
      try {
        const closeEarlier = close;
        close = async () => {};
        close = (await SCENARIOS[name](context)) ?? close;
        await closeEarlier();
        count(name);
        count("lives");
      } catch (error) {
        unexpected(name, error);
      }
      if (!stopped) await rest(random() * MAX_REST);
    }
    await close().catch((error) => unexpected(`${name}, closing`, error));
  }

  const names = Object.entries(given.lanes).flatMap(([name, many]) => Array(many).fill(name));
  const running = names.map(lane);
  return {
    counts,
    errors,
    async stop() {
      stopped = true;
      for (const wake of [...resting]) wake();
      await Promise.all(running);
    },
  };
}

/** The memory that the module of this program has, in bytes. To be called before the package loads its module. */
export function watchModule() {
  const memories = [];
  for (const name of ["instantiate", "instantiateStreaming"]) {
    const original = WebAssembly[name];
    if (original === undefined) continue;
    WebAssembly[name] = async (...args) => {
      const made = await original.apply(WebAssembly, args);
      memories.push((made.instance ?? made).exports.memory);
      return made;
    };
  }
  return () => memories.reduce((sum, memory) => sum + memory.buffer.byteLength, 0);
}

/** Numbers from 0 to 1 that a seed decides (mulberry32), so that a run can be done again. */
function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
