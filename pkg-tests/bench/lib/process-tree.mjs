// Memory and CPU of a process with its descendants, from /proc.
import { readFileSync, readdirSync } from "node:fs";

/** Kernel ticks a second, which Linux fixes for user space. */
const TICKS = 100;

/**
 * @param {number} root the process
 * @param {string} except the name of a descendant that does not count, as in /proc/PID/comm
 * @returns {{ cpu: number, memory: number }} milliseconds of CPU so far, and resident MiB now
 */
export function usage(root, except) {
  let [cpu, memory] = [0, 0];
  for (const id of descendants(root)) {
    const process = read(id);
    if (!process || process.name === except) continue;
    cpu += process.cpu;
    memory += process.memory;
  }
  return { cpu, memory };
}

function descendants(root) {
  const children = new Map();
  for (const id of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const parent = read(id)?.parent;
    if (parent) children.set(parent, [...(children.get(parent) ?? []), id]);
  }
  const all = [String(root)];
  for (const id of all) all.push(...(children.get(id) ?? []));
  return all;
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
    return { name, parent: fields[1], cpu: (ticks * 1000) / TICKS, memory: Number(memory) / 1024 };
  } catch {
    return undefined;
  }
}
