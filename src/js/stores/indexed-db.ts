import { CrabletError } from "../error.js";
import type { SessionStore } from "../store.js";
import { chunkedStore, type Records } from "./chunked.js";

/** How conversations are kept in IndexedDB. */
export interface IndexedDbStoreOptions {
  /** The database, made when it is not there. Default `crablet`. */
  readonly database?: string;
}

/**
 * Keeps conversations in IndexedDB: in pages, workers, service workers and extensions. Every write is one transaction, so that
 * tabs and workers may share a store.
 */
export function indexedDbStore({ database = "crablet" }: IndexedDbStoreOptions = {}): SessionStore {
  let opened: Promise<IDBDatabase> | undefined;
  const open = (): Promise<IDBDatabase> => {
    opened ??= openDatabase(database, () => (opened = undefined)).catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
  return chunkedStore({
    maxChunk: MAX_CHUNK,
    async exclusively(_id, work) {
      const transaction = (await open()).transaction(RECORDS, "readwrite", { durability: "strict" });
      const done = finished(transaction);
      try {
        const result = await work(recordsOf(transaction.objectStore(RECORDS)));
        await done;
        return result;
      } catch (error) {
        done.catch(() => {});
        abort(transaction);
        throw error;
      }
    },
    async keys(prefix) {
      const records = (await open()).transaction(RECORDS).objectStore(RECORDS);
      return (await answered(records.getAllKeys(IDBKeyRange.bound(prefix, `${prefix}\uffff`)))).map(String);
    },
  });
}

const RECORDS = "records";

/** Chromium refuses a message of more than 128 MiB between its processes. */
const MAX_CHUNK = 8 * 1024 * 1024;

function recordsOf(store: IDBObjectStore): Records {
  return {
    get: (keys) => Promise.all(keys.map((key) => answered<unknown>(store.get(key)))),
    async put(records) {
      await Promise.all([...records].map(([key, value]) => answered(store.put(value, key))));
    },
    async delete(keys) {
      await Promise.all(keys.map((key) => answered(store.delete(key))));
    },
  };
}

function openDatabase(name: string, closed: () => void): Promise<IDBDatabase> {
  if (globalThis.indexedDB === undefined)
    throw new CrabletError({ kind: "storage", message: "there is no IndexedDB here: choose another store" });
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(RECORDS);
  return answered(request).then((database) => {
    // Another page may want to delete the database, or the browser to clear it.
    database.onversionchange = () => {
      database.close();
      closed();
    };
    database.onclose = closed;
    return database;
  });
}

function answered<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function finished(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new Error("the transaction was aborted"));
  });
}

function abort(transaction: IDBTransaction): void {
  try {
    transaction.abort();
  } catch {
    // It is over already.
  }
}
