// The process table of Linux, for checks that nothing is left behind.
import { readFile, readdir } from "node:fs/promises";

/** Every process that is not just waiting to be reaped: `{ pid, parent, started, command }`. */
async function processTable() {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(pids.map((pid) => describe(Number(pid)).catch(() => undefined)));
  return found.filter((process) => process !== undefined && process.state !== "Z");
}

async function describe(pid) {
  const [stat, command] = await Promise.all([
    readFile(`/proc/${pid}/stat`, "utf8"),
    readFile(`/proc/${pid}/cmdline`, "utf8"),
  ]);
  // The name in parentheses may hold spaces and parentheses, so the fields are counted from its end.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return {
    pid,
    state: fields[0],
    parent: Number(fields[1]),
    started: fields[19],
    command: command.replaceAll("\0", " ").trim(),
  };
}

/** The processes that descend from `root`, without it. */
export async function descendantsOf(root) {
  const table = await processTable();
  const found = [];
  const parents = [root];
  while (parents.length > 0) {
    const parent = parents.pop();
    for (const process of table) {
      if (process.parent !== parent) continue;
      found.push(process);
      parents.push(process.pid);
    }
  }
  return found;
}

/** Which of these processes still run. A process id that another process has taken since does not count. */
export async function stillRunning(processes) {
  const table = await processTable();
  return processes.filter(({ pid, started }) =>
    table.some((process) => process.pid === pid && process.started === started),
  );
}
