import type { FileEntry, FileStore } from "./file-store.js";

/** A place that a walk came to. */
export interface Visited {
  readonly path: string;
  readonly entry: FileEntry;
}

/** How far a walk goes. */
export interface WalkLimits {
  /** How many folders below the first one: 0 for its own entries only. */
  readonly depth: number;
  /** The most entries looked at. */
  readonly maxEntries: number;
  /** Names of folders that are told but not entered. */
  readonly ignore: ReadonlySet<string>;
  readonly signal: AbortSignal;
}

/** How a walk ended: `complete` is false when there is more than the limit. */
export interface WalkEnd {
  readonly complete: boolean;
}

/** What is in a folder and below, by name, each folder before what is in it. */
export async function* walk(
  store: FileStore,
  folder: string,
  first: readonly FileEntry[],
  limits: WalkLimits,
): AsyncGenerator<Visited, WalkEnd> {
  let left = limits.maxEntries;
  const open: { path: string; entry: FileEntry; depth: number }[] = [];
  const add = (path: string, entries: readonly FileEntry[], depth: number): void => {
    const sorted = [...entries].sort((one, other) => (one.name < other.name ? 1 : -1));
    for (const entry of sorted) open.push({ path: path === "" ? entry.name : `${path}/${entry.name}`, entry, depth });
  };
  add(folder, first, 0);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    limits.signal.throwIfAborted();
    if (left <= 0) return { complete: false };
    left -= 1;
    const { path, entry, depth } = next;
    yield { path, entry };
    if (entry.kind !== "folder" || depth >= limits.depth || limits.ignore.has(entry.name)) continue;
    const wanted = Math.max(left - open.length, 0) + 1;
    add(path, (await store.list(path, wanted)) ?? [], depth + 1);
  }
  return { complete: true };
}
