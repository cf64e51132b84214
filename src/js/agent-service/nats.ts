import { CrabletError, messageOf } from "../error.js";

/*
 * What is used of `@nats-io/nats-core` and `@nats-io/jetstream`, which the caller hands in: this package depends on neither.
 */

/** What is used of a connection: of `connect()` of `@nats-io/transport-node`, or of `wsconnect()` of `@nats-io/nats-core`. */
export interface NatsConnection {
  /** What the server said of itself. */
  readonly info?: { readonly max_payload: number } | undefined;
  /** Whether it was closed for good. */
  isClosed(): boolean;
  /** Hears messages of a subject. */
  subscribe(
    subject: string,
    options?: { callback?: (error: any, message: any) => void },
  ): {
    /** Hears no more. */
    unsubscribe(): void;
  };
}

/** What is used of `jetstream(connection)`. */
export interface JetStream {
  /** Stores a message in the stream of its subject. */
  publish(
    subject: string,
    payload: Uint8Array,
    options: { msgID?: string; timeout?: number; expect?: { lastSubjectSequence?: number } },
  ): Promise<{ readonly seq: number; readonly duplicate: boolean }>;
  /** The consumers of streams. */
  readonly consumers: {
    /** A consumer by its name, or one that keeps the order of a stream. */
    get(stream: string, consumer?: any): Promise<JetStreamConsumer>;
  };
  /** What sets streams up and reads single messages. */
  jetstreamManager(checkApi?: boolean): Promise<JetStreamManager>;
}

/** What is used of a pull consumer. */
export interface JetStreamConsumer {
  /** The next message; `null` when none came in time. */
  next(options: { expires: number }): Promise<JetStreamMessage | null>;
  /** Messages as they come. */
  consume(options?: any): Promise<
    AsyncIterable<JetStreamMessage> & {
      /** Takes no more of them. */
      close(): Promise<unknown>;
    }
  >;
  /** Takes the consumer off the server. */
  delete(): Promise<boolean>;
}

/** A message as a consumer gives it. */
export interface JetStreamMessage {
  readonly subject: string;
  readonly seq: number;
  readonly data: Uint8Array;
  readonly info: {
    /** How often it was delivered, this time included. */
    readonly deliveryCount: number;
  };
  /** It is dealt with. */
  ack(): void;
  /** It is to be given to somebody again, after so many milliseconds. */
  nak(millis?: number): void;
  /** It is being worked on. */
  working(): void;
}

/** A message as a stream keeps it. */
export interface StoredMessage {
  readonly subject: string;
  readonly seq: number;
  readonly data: Uint8Array;
}

/** What is used of `jetstreamManager()`. */
export interface JetStreamManager {
  readonly streams: {
    /** What a stream holds. */
    info(stream: string, options?: any): Promise<{ readonly state: { readonly subjects?: Record<string, number> } }>;
    /** Makes a stream. */
    add(config: any): Promise<unknown>;
    /** Drops messages of a stream. */
    purge(stream: string, options: any): Promise<unknown>;
    /** Drops one message. */
    deleteMessage(stream: string, seq: number, erase?: boolean): Promise<boolean>;
    /** Reads one message; `null` when there is none. */
    getMessage(stream: string, query: any): Promise<StoredMessage | null>;
  };
  readonly consumers: {
    /** What is known of a consumer; rejects when there is none. */
    info(stream: string, consumer: string): Promise<unknown>;
    /** Makes a consumer. */
    add(stream: string, config: any): Promise<unknown>;
  };
}

/**
 * The streams of one connection, with patience: what fails because the server is away is tried again.
 *
 * @internal
 */
export class Streams {
  readonly connection: NatsConnection;
  readonly jetstream: JetStream;
  readonly #patienceMs: number;
  #manager: Promise<JetStreamManager> | undefined;

  constructor(connection: NatsConnection, jetstream: JetStream, patienceMs: number) {
    this.connection = connection;
    this.jetstream = jetstream;
    this.#patienceMs = patienceMs;
  }

  /** The most bytes of a message's body. */
  get maxBytes(): number {
    return (this.connection.info?.max_payload ?? DEFAULT_MAX_PAYLOAD) - HEADROOM;
  }

  async manager(): Promise<JetStreamManager> {
    this.#manager ??= this.jetstream.jetstreamManager(false);
    return this.#manager.catch((thrown: unknown) => {
      this.#manager = undefined;
      throw thrown;
    });
  }

  /** The last message of a subject. */
  last(stream: string, subject: string): Promise<StoredMessage | undefined> {
    return this.#message(stream, { last_by_subj: subject });
  }

  /** The first message of a subject from a sequence on. */
  next(stream: string, subject: string, seq: number): Promise<StoredMessage | undefined> {
    return this.#message(stream, { seq, next_by_subj: subject });
  }

  #message(stream: string, query: unknown): Promise<StoredMessage | undefined> {
    return this.patiently(async () => {
      try {
        const found = await (await this.manager()).streams.getMessage(stream, query);
        return found ?? undefined;
      } catch (thrown) {
        if (codeOf(thrown) === NO_MESSAGE) return undefined;
        throw thrown;
      }
    });
  }

  /**
   * Adds a message behind the one with this sequence, 0 for none. Of two that build on the same one, the second is refused:
   * `undefined`. A message that was stored although its answer was lost is known by its bytes, which hold an id.
   */
  async chain(
    place: { readonly stream: string; readonly subject: string },
    previous: number,
    id: string,
    payload: Uint8Array,
  ): Promise<number | undefined> {
    return this.patiently(async () => {
      try {
        const options = { msgID: id, expect: { lastSubjectSequence: previous } };
        return (await this.jetstream.publish(place.subject, payload, options)).seq;
      } catch (thrown) {
        if (codeOf(thrown) !== WRONG_LAST_SEQUENCE) throw thrown;
        const last = await this.last(place.stream, place.subject);
        return last !== undefined && isSame(last.data, payload) ? last.seq : undefined;
      }
    });
  }

  /** Does something again while the server is away, for as long as there is patience. */
  async patiently<T>(work: () => Promise<T>): Promise<T> {
    const deadline = Date.now() + this.#patienceMs;
    for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, MAX_WAIT_MS)) {
      try {
        return await work();
      } catch (thrown) {
        if (!isPassing(thrown) || this.connection.isClosed() || Date.now() + wait > deadline) throw thrown;
      }
      await sleep(wait);
    }
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

/** @internal */
export const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis));

/** @internal An id that nobody else makes. */
export const nonce = (): string => crypto.randomUUID();

/** @internal */
export const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** @internal */
export const decode = (data: Uint8Array): string => new TextDecoder().decode(data);

/** @internal The number that JetStream gives an error; `undefined` for what came from elsewhere. */
export function codeOf(thrown: unknown): number | undefined {
  const code = (thrown as { readonly code?: unknown } | null)?.code;
  return typeof code === "number" ? code : undefined;
}

/** @internal An error of NATS as one of this package. */
export function natsError(thrown: unknown, doing: string): CrabletError {
  if (CrabletError.is(thrown)) return thrown;
  const message = `${doing}: ${messageOf(thrown)}`;
  return new CrabletError({ kind: "storage", message, retryable: isPassing(thrown) }, { cause: thrown });
}

/** Whether it may go better later: the server is away, restarting or without a leader. */
function isPassing(thrown: unknown): boolean {
  if (CrabletError.is(thrown)) return false;
  const status = (thrown as { readonly status?: unknown } | null)?.status;
  // JetStream answered, and said what is wrong with the request.
  return codeOf(thrown) === undefined || status === 503 || status === 500;
}

/** @internal JetStream: the stream has no such message. */
export const NO_MESSAGE = 10037;
/** @internal JetStream: the subject's last message is another than expected. */
export const WRONG_LAST_SEQUENCE = 10071;

/** What a server takes unless it is told otherwise. */
const DEFAULT_MAX_PAYLOAD = 1024 * 1024;
/** What subject and headers of a message may take of it. */
const HEADROOM = 4096;
const FIRST_WAIT_MS = 50;
const MAX_WAIT_MS = 2_000;
