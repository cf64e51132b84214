/**
 * Stores of conversations for `agent.open()`: in memory, in files, in IndexedDB, in an extension's storage, in a Durable Object;
 * and an archive of finished ones in Workers KV.
 *
 * @packageDocumentation
 */
export { conflict, type SessionStore, type StoredSession } from "../store.js";
export { type DurableObjectStorage, durableObjectStore, type DurableObjectTransaction } from "./durable-object.js";
export { type ExtensionStorageArea, extensionStore, type ExtensionStoreOptions } from "./extension.js";
export { fileStore } from "./files.js";
export { indexedDbStore, type IndexedDbStoreOptions } from "./indexed-db.js";
export { type KvArchive, kvArchive, type KvNamespace } from "./kv.js";
export { memoryStore } from "./memory.js";
