import { conflict } from "../store.js";
import { decode, encode, natsError, nonce, type Streams } from "./nats.js";
import {
  type EventMessage,
  parseEvents,
  phaseAfter,
  type RunPhase,
  type SessionEvent,
  type StreamSubject,
} from "./protocol.js";

/** @internal The end of a session's events as it was read. */
export interface EventTail extends RunPhase {
  /** The sequence of the last message, 0 for none. */
  readonly seq: number;
}

/** @internal Reads where a session's events end. */
export async function readTail(streams: Streams, place: StreamSubject): Promise<EventTail> {
  const last = await streams.last(place.stream, place.subject);
  if (last === undefined) return { seq: 0, phase: "none" };
  const { phase = "none", runId } = parseEvents(decode(last.data)) ?? {};
  return { seq: last.seq, phase, ...(runId !== undefined && { runId }) };
}

/**
 * Publishes the events of one session in their order. Each message names the one that it follows, so that of two workers one is
 * refused. Events that come while a message is on its way go together in the next.
 *
 * @internal
 */
export class EventLog {
  readonly #streams: Streams;
  readonly #place: StreamSubject;
  readonly #session: string;
  readonly #worker: string;
  readonly #onFailure: (error: unknown) => void;
  #tail: EventTail;
  #waiting: string[] = [];
  #phases: RunPhase[] = [];
  #waitingBytes = 0;
  #publishing: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(
    streams: Streams,
    given: {
      readonly place: StreamSubject;
      readonly session: string;
      readonly worker: string;
      readonly tail: EventTail;
      /** Told when nothing more can be published. */
      readonly onFailure: (error: unknown) => void;
    },
  ) {
    this.#streams = streams;
    this.#place = given.place;
    this.#session = given.session;
    this.#worker = given.worker;
    this.#tail = given.tail;
    this.#onFailure = given.onFailure;
  }

  /** Where a run is as of the last event. */
  get phase(): RunPhase {
    const { phase, runId } = this.#phases.at(-1) ?? this.#tail;
    return { phase, ...(runId !== undefined && { runId }) };
  }

  /**
   * Adds an event. Resolves once there is room for more.
   *
   * @throws what made publishing fail; `conflict` when another worker goes on with the session.
   */
  async push(event: SessionEvent): Promise<void> {
    this.#check();
    const text = this.#bounded(event);
    this.#phases.push(phaseAfter(this.phase, event));
    this.#waiting.push(text);
    this.#waitingBytes += text.length;
    this.#publishing ??= this.#publish();
    while (this.#waitingBytes > MAX_WAITING) {
      await this.#publishing;
      this.#check();
    }
  }

  /** Resolves when all is published. */
  async flush(): Promise<void> {
    while (this.#publishing !== undefined) await this.#publishing;
    this.#check();
  }

  /** Publishes nothing more. */
  stop(error: unknown): void {
    this.#failure ??= { error };
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  async #publish(): Promise<void> {
    try {
      while (this.#waiting.length > 0 && this.#failure === undefined) await this.#publishSome();
    } catch (thrown) {
      const error = natsError(thrown, "the events of a session could not be published");
      this.stop(error);
      this.#onFailure(error);
    } finally {
      this.#publishing = undefined;
    }
  }

  /** Publishes as many events as a message holds. */
  async #publishSome(): Promise<void> {
    const most = this.#streams.maxBytes - HEAD_BYTES;
    let bytes = 0;
    let count = 0;
    for (const text of this.#waiting) {
      bytes += encode(text).length + 1;
      if (count > 0 && bytes > most) break;
      count += 1;
    }
    const events = this.#waiting.splice(0, count);
    const phase = this.#phases.splice(0, count).at(-1) ?? { phase: "none" };
    const id = nonce();
    const head: Omit<EventMessage, "events"> = { v: 1, id, worker: this.#worker, previous: this.#tail.seq, ...phase };
    const payload = encode(`${JSON.stringify(head).slice(0, -1)},"events":[${events.join(",")}]}`);
    const seq = await this.#streams.chain(this.#place, this.#tail.seq, id, payload);
    if (seq === undefined) throw conflict(this.#session, this.#tail.seq);
    this.#tail = { ...phase, seq };
    this.#waitingBytes -= events.reduce((sum, text) => sum + text.length, 0);
  }

  /** The event as JSON, or what stands for one that no message holds. */
  #bounded(event: SessionEvent): string {
    const text = JSON.stringify(event);
    const bytes = text.length * 3 < this.#streams.maxBytes - HEAD_BYTES ? 0 : encode(text).length;
    if (bytes <= this.#streams.maxBytes - HEAD_BYTES) return text;
    const callId = "callId" in event ? { callId: event.callId } : {};
    return JSON.stringify({ type: "event-too-long", of: event.type, bytes, ...callId } satisfies SessionEvent);
  }
}

/** The most UTF-16 units of events that wait to be published; then the run pauses. */
const MAX_WAITING = 1_000_000;
/** What a message of events says beside its events. */
const HEAD_BYTES = 1024;
