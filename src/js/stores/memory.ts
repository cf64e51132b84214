import { conflict, type SessionStore, type StoredSession } from "../store.js";

/** Keeps conversations in memory, for as long as the page or process lives. */
export function memoryStore(): SessionStore {
  const kept = new Map<string, StoredSession>();
  // Nothing is awaited between the look at the version and the write, so no other write comes between.
  const write = (id: string, expectedVersion: number, entries: (before: readonly string[]) => string[]): number => {
    const before = kept.get(id) ?? { version: 0, entries: [] };
    if (before.version !== expectedVersion) throw conflict(id, expectedVersion);
    const version = before.version + 1;
    kept.set(id, { version, entries: entries(before.entries) });
    return version;
  };
  return {
    read: async (id) => kept.get(id),
    append: async (id, expectedVersion, entries) => write(id, expectedVersion, (before) => [...before, ...entries]),
    replace: async (id, expectedVersion, base) => write(id, expectedVersion, () => [...base]),
    delete: async (id) => void kept.delete(id),
    list: async () => [...kept.keys()].sort(),
  };
}
