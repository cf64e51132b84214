import { CrabletError } from "../error.js";
import type { SessionStore } from "../store.js";
import { chunkedStore, type Records } from "./chunked.js";

/** What is used of `chrome.storage.local`, `session` or `sync`, or of Firefox's `browser.storage`. */
export interface ExtensionStorageArea {
  /** The values of these keys that there are; of all for `null`. */
  get(keys: string[] | null): Promise<Record<string, unknown>>;
  /** Writes these values, all or none. */
  set(items: Record<string, unknown>): Promise<void>;
  /** Removes these keys. */
  remove(keys: string[]): Promise<void>;
}

/** How conversations are kept in an extension's storage. */
export interface ExtensionStoreOptions {
  /**
   * The most UTF-16 units of a value. Default 262144, for `local` and `session`; `chrome.storage.sync` takes 8192 bytes a value, for
   * which 2000 are safe in every script.
   */
  readonly maxChunk?: number;
}

/**
 * Keeps conversations in an area of an extension's storage, such as `chrome.storage.local`. The storage knows no transactions, so
 * writers take turns by Web Locks, which all pages and workers of an extension share.
 *
 * `local` holds 10 MB unless the extension asks for `unlimitedStorage`.
 */
export function extensionStore(
  area: ExtensionStorageArea,
  { maxChunk = 256 * 1024 }: ExtensionStoreOptions = {},
): SessionStore {
  return chunkedStore({
    maxChunk,
    exclusively: (id, work) => {
      const locks = globalThis.navigator?.locks;
      if (locks === undefined)
        throw new CrabletError({ kind: "storage", message: "there are no Web Locks here, which this store needs" });
      return locks.request(`crablet:${id}`, () => work(recordsOf(area))) as ReturnType<typeof work>;
    },
    keys: async (prefix) => Object.keys(await area.get(null)).filter((key) => key.startsWith(prefix)),
  });
}

/** The values of one `set` are written together. */
function recordsOf(area: ExtensionStorageArea): Records {
  return {
    async get(keys) {
      const found = await area.get([...keys]);
      return keys.map((key) => found[key]);
    },
    put: (records) => area.set(Object.fromEntries(records)),
    delete: (keys) => area.remove([...keys]),
  };
}
