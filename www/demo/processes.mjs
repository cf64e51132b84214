// The process table, for checks that nothing is left behind.
import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Every process: `{ pid, parent, command }`. */
async function processTable() {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "pid=,ppid=,stat=,args="], { maxBuffer: 16 * 1024 * 1024 });
  return stdout
    .split("\n")
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line))
    .filter(Boolean)
    .map(([, pid, parent, state, command]) => ({ pid: Number(pid), parent: Number(parent), state, command }))
    .filter(({ state }) => !state.startsWith("Z"));
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

/** Which of these processes still run. A process id that another command has taken since does not count. */
export async function stillRunning(processes) {
  const table = await processTable();
  return processes.filter(({ pid, command }) => table.some((process) => process.pid === pid && process.command === command));
}
