import { CrabletError, invalidInput } from "../error.js";
import { conflict, type SessionStore } from "../store.js";
import { NONE_TAKEN, type Taken } from "./inputs.js";
import { type JetStream, type NatsConnection, natsError, codeOf, decode, encode, nonce, Streams } from "./nats.js";
import { keyOf, sessionOf, type StreamSubject, tokenOf } from "./protocol.js";
import { EMPTY_LOG, foldLog, headOf, type LogContents, type LogRecord, recordsOf } from "./session-log.js";

/** Where `natsStore` keeps conversations. */
export interface NatsStoreOptions {
  /** An open connection. */
  readonly connection: NatsConnection;
  /** `jetstream(connection)`. */
  readonly jetstream: JetStream;
  /** The name of the bucket: letters, digits, `-` and `_`. It is made when it is missing. */
  readonly bucket: string;
  /** How long a write is tried again while the server is away, in milliseconds. Default 30 000. */
  readonly patienceMs?: number;
  /** How often each record is kept, when the bucket is made. Default 1. */
  readonly replicas?: number;
}

/**
 * Keeps conversations in a key-value bucket of NATS JetStream, a key each.
 *
 * Each write is a revision of the key that names the revision it builds on, and holds only what is new: the bucket keeps every
 * revision of a key until a `replace`. A write longer than the server's `max_payload` goes as several revisions, which count
 * once the last of them is there.
 */
export function natsStore({ connection, jetstream, bucket, patienceMs, replicas }: NatsStoreOptions): SessionStore {
  if (!/^[A-Za-z0-9_-]+$/.test(bucket)) throw invalidInput('the name of a bucket is of letters, digits, "-" and "_"');
  const streams = new Streams(connection, jetstream, patienceMs ?? PATIENCE_MS);
  let setUp: Promise<void> | undefined;
  const log = async (): Promise<SessionLogs> => {
    setUp ??= setUpBucket(streams, bucket, replicas ?? 1);
    await setUp.catch((thrown: unknown) => {
      setUp = undefined;
      throw natsError(thrown, `the bucket ${bucket} could not be set up`);
    });
    return logs;
  };
  const logs = new SessionLogs(streams, bucket);
  return {
    async read(id) {
      const { version, entries } = await (await log()).read(id);
      return version === 0 ? undefined : { version, entries };
    },
    append: async (id, expectedVersion, entries) => (await log()).write(id, expectedVersion, "append", entries),
    replace: async (id, expectedVersion, base) => (await log()).write(id, expectedVersion, "replace", base),
    delete: async (id) => (await log()).delete(id),
    list: async () => (await log()).list(),
  };
}

/** @internal Makes the bucket of sessions. */
export async function setUpBucket(streams: Streams, bucket: string, replicas: number): Promise<void> {
  await ensureStream(streams, {
    name: `KV_${bucket}`,
    subjects: [`$KV.${bucket}.>`],
    // Every revision counts until a replacement takes the place of all.
    max_msgs_per_subject: -1,
    num_replicas: replicas,
    ...BUCKET,
  });
}

/** @internal What makes a stream a key-value bucket. */
export const BUCKET = {
  retention: "limits",
  storage: "file",
  discard: "new",
  allow_rollup_hdrs: true,
  deny_delete: false,
  allow_direct: false,
} as const;

/** @internal Makes a stream unless it is there; one that is there is left as it is. */
export async function ensureStream(
  streams: Streams,
  config: { readonly name: string } & Readonly<Record<string, unknown>>,
): Promise<void> {
  await streams.patiently(async () => {
    const { streams: api } = await streams.manager();
    try {
      await api.info(config.name);
    } catch (thrown) {
      if (codeOf(thrown) !== STREAM_NOT_FOUND) throw thrown;
      await api.add(config).catch((added: unknown) => {
        // Somebody else made it in the meantime.
        if (codeOf(added) !== STREAM_NAME_IN_USE) throw added;
      });
    }
  });
}

/** @internal The logs of sessions, which a bucket keeps. */
export class SessionLogs {
  readonly #streams: Streams;
  readonly #bucket: string;
  /** What the last read or write of a session left behind. */
  readonly #known = new Map<string, { readonly version: number; readonly revision: number }>();

  constructor(streams: Streams, bucket: string) {
    this.#streams = streams;
    this.#bucket = bucket;
  }

  /** What is kept of a session. */
  async read(id: string): Promise<LogContents> {
    const { stream, subject } = this.#place(id);
    try {
      const records: LogRecord[] = [];
      for (let seq = 1; ; ) {
        const message = await this.#streams.next(stream, subject, seq);
        if (message === undefined) break;
        records.push({ seq: message.seq, text: decode(message.data) });
        seq = message.seq + 1;
      }
      const contents = records.length === 0 ? EMPTY_LOG : foldLog(records);
      this.#remember(id, contents);
      return contents;
    } catch (thrown) {
      throw natsError(thrown, `the session ${JSON.stringify(id)} could not be read`);
    }
  }

  /** Writes as a store does, and gives the new version. */
  async write(
    id: string,
    expectedVersion: number,
    kind: "append" | "replace",
    entries: readonly string[],
    taken: Taken = NONE_TAKEN,
  ): Promise<number> {
    const known = await this.#at(id, expectedVersion);
    if (kind === "append" && expectedVersion === 0) throw conflict(id, expectedVersion);
    const version = expectedVersion + 1;
    const { first, revision } = await this.#add(id, expectedVersion, known.revision, { kind, version, taken }, entries);
    this.#remember(id, { version, revision });
    if (kind === "replace" && known.revision > 0) await this.#purge(id, first);
    return version;
  }

  /** Makes every write fail that builds on what was there before. */
  async fence(id: string, contents: LogContents): Promise<void> {
    const { version, taken } = contents;
    const { revision } = await this.#add(id, version, contents.revision, { kind: "fence", version, taken }, []);
    this.#remember(id, { version, revision });
  }

  /** Forgets what is kept of a session. */
  async delete(id: string): Promise<void> {
    this.#known.delete(id);
    const { stream, subject } = this.#place(id);
    try {
      const { streams } = await this.#streams.manager();
      await this.#streams.patiently(() => streams.purge(stream, { filter: subject }));
    } catch (thrown) {
      throw natsError(thrown, `the session ${JSON.stringify(id)} could not be deleted`);
    }
  }

  /** The ids of all sessions, sorted. */
  async list(): Promise<string[]> {
    const prefix = `$KV.${this.#bucket}.`;
    try {
      const { streams } = await this.#streams.manager();
      const { state } = await streams.info(`KV_${this.#bucket}`, { subjects_filter: `${prefix}>` });
      const ids = Object.keys(state.subjects ?? {}).map((subject) => sessionOf(subject.slice(prefix.length)));
      return ids.filter((id) => id !== undefined).sort();
    } catch (thrown) {
      throw natsError(thrown, "the sessions could not be listed");
    }
  }

  /** Keeps no place in memory for a session that is not at work any more. */
  forget(id: string): void {
    this.#known.delete(id);
  }

  /** What the write of this version builds on. */
  async #at(id: string, version: number): Promise<{ readonly revision: number }> {
    const known = this.#known.get(id);
    if (known?.version === version) return known;
    const { stream, subject } = this.#place(id);
    const last = await this.#streams.last(stream, subject).catch((thrown: unknown) => {
      throw natsError(thrown, `the session ${JSON.stringify(id)} could not be read`);
    });
    if (last === undefined && version === 0) return { revision: 0 };
    const head = last === undefined ? undefined : headOf(decode(last.data).split("\n", 1)[0] ?? "");
    const isWhole = head !== undefined && (head.kind === "fence" || head.part === head.parts - 1);
    if (last !== undefined && isWhole && head.version === version) return { revision: last.seq };
    // The end of a write that was not made to its end, or another version.
    const contents = await this.read(id);
    if (contents.version !== version) throw conflict(id, version);
    return contents;
  }

  async #add(
    id: string,
    expectedVersion: number,
    previous: number,
    head: { readonly kind: "append" | "replace" | "fence"; readonly version: number; readonly taken: Taken },
    entries: readonly string[],
  ): Promise<{ readonly first: number; readonly revision: number }> {
    const place = this.#place(id);
    const write = nonce();
    let first = 0;
    let revision = previous;
    for (const [part, text] of recordsOf({ id: write, ...head }, entries, this.#streams.maxBytes).entries()) {
      const seq = await this.#streams
        .chain(place, revision, `${write}.${part}`, encode(text))
        .catch((thrown: unknown) => {
          this.#known.delete(id);
          throw natsError(thrown, `the session ${JSON.stringify(id)} could not be written`);
        });
      if (seq === undefined) {
        this.#known.delete(id);
        throw conflict(id, expectedVersion);
      }
      first ||= seq;
      revision = seq;
    }
    return { first, revision };
  }

  /** Takes away what a replacement stands for. Readers do not look at it: what fails here is only space. */
  async #purge(id: string, first: number): Promise<void> {
    const { stream, subject } = this.#place(id);
    try {
      const { streams } = await this.#streams.manager();
      await streams.purge(stream, { filter: subject, seq: first });
    } catch {
      // The next replacement takes it away.
    }
  }

  #place(id: string): StreamSubject {
    return keyOf(this.#bucket, tokenOf(id));
  }

  #remember(id: string, { version, revision }: { readonly version: number; readonly revision: number }): void {
    this.#known.delete(id);
    this.#known.set(id, { version, revision });
    if (this.#known.size > MAX_KNOWN) for (const oldest of this.#known.keys()) if (this.#known.delete(oldest)) break;
  }
}

/** @internal Whether an error says that somebody else wrote the session. */
export const isConflict = (thrown: unknown): boolean => CrabletError.is(thrown) && thrown.kind === "conflict";

/** @internal */
export const PATIENCE_MS = 30_000;
/** Sessions whose last revision is kept in mind; of others it is read again. */
const MAX_KNOWN = 10_000;
const STREAM_NOT_FOUND = 10059;
const STREAM_NAME_IN_USE = 10058;
