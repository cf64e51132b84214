import { CrabletError, invalidInput } from "../error.js";
import { contentsOf } from "../saved-text.js";
import type { SessionSnapshot } from "../session.js";

/** What is used of a namespace of Workers KV. */
export interface KvNamespace {
  /** The value under a key; `null` when there is none. */
  get(key: string): Promise<string | null>;
  /** Writes a value. */
  put(key: string, value: string): Promise<void>;
  /** Removes a key; there may be none. */
  delete(key: string): Promise<void>;
  /** The keys that begin so, a page at a time. */
  list(options: { prefix: string; cursor?: string }): Promise<{
    readonly keys: readonly { readonly name: string }[];
    readonly list_complete: boolean;
    readonly cursor?: string;
  }>;
}

/** Finished conversations in Workers KV. */
export interface KvArchive {
  /**
   * Keeps a conversation.
   *
   * @throws CrabletError `invalid-input` when a run of it is not finished; `storage` when it is longer than KV takes.
   */
  save(id: string, session: { toJSON(): SessionSnapshot } | SessionSnapshot): Promise<void>;
  /** A conversation, for `agent.session()`; `undefined` when there is none. */
  read(id: string): Promise<SessionSnapshot | undefined>;
  /** Forgets a conversation; there may be none. */
  delete(id: string): Promise<void>;
  /** The ids of all conversations, sorted. */
  list(): Promise<readonly string[]>;
}

/**
 * An archive of finished conversations in Workers KV.
 *
 * It is no store for `agent.open()`: KV cannot tell that somebody else wrote a value, and others may read an old one for a
 * minute. Of conversations that go on, the last writer would silently win; keep those in a Durable Object.
 */
export function kvArchive(namespace: KvNamespace): KvArchive {
  return {
    async save(id, session) {
      const { snapshot } = "toJSON" in session ? session.toJSON() : session;
      if (snapshot === undefined) return;
      if (contentsOf(snapshot).isOpen)
        throw invalidInput("a run of this session is not finished, and Workers KV is for finished sessions only");
      if (new TextEncoder().encode(snapshot).length > MAX_BYTES)
        throw new CrabletError({ kind: "storage", message: "this session is longer than the 25 MiB of a value in KV" });
      await namespace.put(PREFIX + id, snapshot);
    },
    async read(id) {
      const snapshot = await namespace.get(PREFIX + id);
      return snapshot === null ? undefined : { version: 1, snapshot };
    },
    delete: (id) => namespace.delete(PREFIX + id),
    async list() {
      const ids: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = await namespace.list({ prefix: PREFIX, ...(cursor !== undefined && { cursor }) });
        ids.push(...page.keys.map(({ name }) => name.slice(PREFIX.length)));
        if (page.list_complete || page.cursor === undefined) return ids.sort();
        cursor = page.cursor;
      }
    },
  };
}

const PREFIX = "crablet:session:";

const MAX_BYTES = 25 * 1024 * 1024;
