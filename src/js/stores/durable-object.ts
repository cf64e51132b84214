import type { SessionStore } from "../store.js";
import { chunkedStore, type Records } from "./chunked.js";

/** What is used of the storage of a Durable Object within a transaction. */
export interface DurableObjectTransaction {
  /** The values of these keys that there are. */
  get(keys: string[]): Promise<Map<string, unknown>>;
  /** Writes these values. */
  put(entries: Record<string, unknown>): Promise<void>;
  /** Removes these keys and says how many there were. */
  delete(keys: string[]): Promise<number>;
}

/** What is used of `state.storage` of a Durable Object. */
export interface DurableObjectStorage {
  /** Does the work as a whole or not at all, and alone. */
  transaction<T>(work: (transaction: DurableObjectTransaction) => Promise<T>): Promise<T>;
  /** The values under the keys that begin so. */
  list(options: { prefix: string }): Promise<Map<string, unknown>>;
}

/**
 * Keeps conversations in the storage of a Durable Object, `state.storage`. Every write is one transaction. Values are cut to fit
 * the 128 KiB of the key-value form; the form on SQLite takes them as well.
 */
export function durableObjectStore(storage: DurableObjectStorage): SessionStore {
  return chunkedStore({
    maxChunk: MAX_CHUNK,
    exclusively: (_id, work) => storage.transaction((transaction) => work(recordsOf(transaction))),
    keys: async (prefix) => [...(await storage.list({ prefix })).keys()],
  });
}

function recordsOf(transaction: DurableObjectTransaction): Records {
  return {
    async get(keys) {
      const found = new Map<string, unknown>();
      for (const some of batches(keys)) for (const [key, value] of await transaction.get(some)) found.set(key, value);
      return keys.map((key) => found.get(key));
    },
    async put(records) {
      for (const some of batches([...records])) await transaction.put(Object.fromEntries(some));
    },
    async delete(keys) {
      for (const some of batches(keys)) await transaction.delete(some);
    },
  };
}

/** A value of at most 128 KiB, in the two bytes a unit that text outside Latin takes. */
const MAX_CHUNK = 60_000;

/** The most keys of one call. */
const MAX_KEYS = 128;

function batches<T>(items: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(items.length / MAX_KEYS) }, (_, index) =>
    items.slice(index * MAX_KEYS, (index + 1) * MAX_KEYS),
  );
}
