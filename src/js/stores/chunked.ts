import { conflict, type SessionStore } from "../store.js";

/**
 * A key-value storage, as far as a store needs one.
 *
 * @internal
 */
export interface Records {
  /** The values of these keys, in their order. */
  get(keys: readonly string[]): Promise<readonly unknown[]>;
  put(records: ReadonlyMap<string, unknown>): Promise<void>;
  delete(keys: readonly string[]): Promise<void>;
}

/** @internal */
export interface ChunkedStorage {
  /** Works on the records of a conversation with nobody else at them, and undoes all of it when the work throws. */
  exclusively<T>(id: string, work: (records: Records) => Promise<T>): Promise<T>;
  /** The keys that begin so. */
  keys(prefix: string): Promise<readonly string[]>;
  /** The most UTF-16 units of a value. */
  readonly maxChunk: number;
}

/** What is kept of a conversation beside its chunks. */
interface Head {
  readonly version: number;
  /** The chunks are numbered from here to before `end`. */
  readonly first: number;
  readonly end: number;
}

/**
 * A store on a key-value storage with a limit for each value: entries are cut to chunks.
 *
 * The head of a conversation is written with its chunks; whoever reads it finds all of them.
 *
 * @internal
 */
export function chunkedStore({ exclusively, keys, maxChunk }: ChunkedStorage): SessionStore {
  const headOf = async (records: Records, id: string): Promise<Head | undefined> => {
    const [head] = await records.get([headKey(id)]);
    return head as Head | undefined;
  };

  const write = (id: string, expectedVersion: number, entries: readonly string[], replaces: boolean): Promise<number> =>
    exclusively(id, async (records) => {
      const before = (await headOf(records, id)) ?? { version: 0, first: 0, end: 0 };
      if (before.version !== expectedVersion) throw conflict(id, expectedVersion);
      const chunks = cut(entries.map((entry) => `${entry}\n`).join(""), maxChunk);
      const version = before.version + 1;
      const head: Head = {
        version,
        first: replaces ? before.end : before.first,
        end: before.end + chunks.length,
      };
      const added = new Map<string, unknown>(chunks.map((chunk, index) => [chunkKey(id, before.end + index), chunk]));
      await records.put(added.set(headKey(id), head));
      if (replaces) await records.delete(chunkKeys(id, before));
      return version;
    });

  return {
    read: (id) =>
      exclusively(id, async (records) => {
        const head = await headOf(records, id);
        if (head === undefined) return undefined;
        const text = (await records.get(chunkKeys(id, head))).join("");
        return { version: head.version, entries: text.split("\n").filter((entry) => entry !== "") };
      }),
    append: (id, expectedVersion, entries) => write(id, expectedVersion, entries, false),
    replace: (id, expectedVersion, base) => write(id, expectedVersion, base, true),
    delete: (id) =>
      exclusively(id, async (records) => {
        const head = await headOf(records, id);
        if (head !== undefined) await records.delete([headKey(id), ...chunkKeys(id, head)]);
      }),
    list: async () => (await keys(HEADS)).map((key) => key.slice(HEADS.length)).sort(),
  };
}

const HEADS = "crablet:session:";
const headKey = (id: string): string => HEADS + id;
const chunkKey = (id: string, index: number): string => `crablet:chunk:${id}:${index}`;

function chunkKeys(id: string, { first, end }: Head): string[] {
  return Array.from({ length: end - first }, (_, index) => chunkKey(id, first + index));
}

/** Pieces of a text, never cut within a character. */
function cut(text: string, most: number): string[] {
  const pieces: string[] = [];
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + most, text.length);
    if (end < text.length && isLowSurrogate(text.charCodeAt(end))) end -= 1;
    pieces.push(text.slice(start, end));
    start = end;
  }
  return pieces;
}

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;
