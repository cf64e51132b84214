// Processes with their descendants: memory, CPU and open files, from /proc.
import { readFileSync, readdirSync, readlinkSync } from "node:fs";

/** Kernel ticks a second, which Linux fixes for user space. */
const TICKS = 100;

/**
 * @param {number} root the process
 * @param {string} except the name of a descendant that does not count, as in /proc/PID/comm
 * @returns {{ cpu: number, memory: number }} milliseconds of CPU so far, and resident MiB now
 */
export function usage(root, except) {
  let [cpu, memory] = [0, 0];
  for (const process of descendants(root)) {
    if (process.name === except) continue;
    cpu += process.cpu;
    memory += process.memory;
  }
  return { cpu, memory };
}

/**
 * The process and all that it started, directly or not, and that still runs.
 *
 * @param {number} root
 * @returns {{ id: number, name: string, parent: number, cpu: number, memory: number }[]} as in {@link usage}
 */
export function descendants(root) {
  const ids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const running = ids.map(read).filter((process) => process !== undefined);
  const found = running.filter(({ id }) => id === root);
  for (const { id } of found) found.push(...running.filter(({ parent }) => parent === id));
  return found;
}

/**
 * What a process has open.
 *
 * @param {number} id
 * @returns {{ files: number, sockets: number }} `files` counts the sockets too; both are 0 when it has ended
 */
export function openFiles(id) {
  const folder = `/proc/${id}/fd`;
  let [files, sockets] = [0, 0];
  try {
    for (const name of readdirSync(folder)) {
      files += 1;
      if (target(`${folder}/${name}`)?.startsWith("socket:")) sockets += 1;
    }
  } catch {
    // It has ended.
  }
  return { files, sockets };
}

/** `undefined` when it was closed meanwhile. */
function target(link) {
  try {
    return readlinkSync(link);
  } catch {
    return undefined;
  }
}

/** `undefined` when it has ended. */
function read(id) {
  try {
    const status = readFileSync(`/proc/${id}/stat`, "utf8");
    const [name, rest] = [
      status.slice(status.indexOf("(") + 1, status.lastIndexOf(")")),
      status.slice(status.lastIndexOf(")") + 2),
    ];
    const fields = rest.split(" ");
    const memory = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, "utf8"))?.[1] ?? 0;
    const ticks = Number(fields[11]) + Number(fields[12]);
    return {
      id: Number(id),
      name,
      parent: Number(fields[1]),
      cpu: (ticks * 1000) / TICKS,
      memory: Number(memory) / 1024,
    };
  } catch {
    return undefined;
  }
}
