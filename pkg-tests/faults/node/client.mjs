// crablet's npm package under faults, in Node: plays the scripts that the harness asks for, many at once.
// `node --expose-gc client.mjs`, started by `crablet-faults node`.
import "./clock.mjs";
import { readdirSync, readlinkSync } from "node:fs";
import { init } from "crablet";
import { watchModule } from "../../soak/churn.mjs";
import { heldAnswers } from "./answers.mjs";
import { wait } from "./clock.mjs";
import { serve } from "./harness.mjs";
import { play, shown } from "./play.mjs";

const KIB = 1024;
const moduleBytes = watchModule();
/** What keeps this process at work, and what it has open, before the first script. */
let before;

/** What was thrown where nobody catches it. */
const uncaught = [];
process.on("uncaughtException", (error) => uncaught.push(error?.stack ?? String(error)));

serve({
  async begin() {
    await init();
    // They are made when they are used first.
    for (const stream of [process.stdout, process.stderr]) stream.write("");
    before = { active: counted(process.getActiveResourcesInfo()), open: openFiles() };
  },
  play,
  /** Only a package that was built for this harness has defects to plant. */
  plant: ({ defect }) => globalThis.plantDefect(defect),
  /** The last that a script has shown. */
  seen: ({ seed }) => JSON.stringify(shown.get(seed)?.slice(-4)),
  async memory() {
    // The second pass frees what the first one finalized.
    for (let pass = 0; pass < 2; pass += 1) {
      globalThis.gc();
      await wait(0);
    }
    const { heapUsed, external } = process.memoryUsage();
    return Math.round((heapUsed + external + moduleBytes()) / KIB);
  },
  left() {
    globalThis.gc();
    const active = Object.entries(counted(process.getActiveResourcesInfo()));
    const more = active.filter(([name, count]) => count > (before.active[name] ?? 0));
    const left = more.map(([name, count]) => `${count} of ${name} are active; ${before.active[name] ?? 0} were before`);
    left.push(...uncaught.map((error) => `nobody caught ${error}`));
    if (heldAnswers() > 0) left.push(`the bodies of ${heldAnswers()} answers are held`);
    const open = openFiles();
    if (open > before.open) left.push(`${open} files and sockets are open in Node; ${before.open} were before`);
    return left;
  },
});

function counted(names) {
  const counts = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

/** How many files and sockets this process has open; what Node has for itself is no file. */
function openFiles() {
  const folder = "/proc/self/fd";
  const isFile = (name) => {
    try {
      return !readlinkSync(`${folder}/${name}`).startsWith("anon_inode:");
    } catch {
      // It was closed meanwhile, as the folder itself.
      return false;
    }
  };
  return readdirSync(folder).filter(isFile).length;
}
