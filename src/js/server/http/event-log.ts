/** Some minutes of progress reports. */
const MAX_EVENTS = 1_024;
/** The most characters of events of one session. */
const MAX_LENGTH = 4 * 1024 * 1024;

/** Names an event: its stream and its number there. */
export interface EventId {
  readonly stream: number;
  readonly number: number;
}

/** A message on its way to a response, as its text. */
export interface Piece {
  /** The event's name, where the stream can be resumed. */
  readonly id?: EventId;
  readonly text: string;
  /** Whether the stream ends with it. */
  readonly isLast: boolean;
}

/** Writes an id as `stream-number`. */
export function eventId({ stream, number }: EventId): string {
  return `${stream}-${number}`;
}

/** Reads what a client gives back in `Last-Event-ID`. */
export function readEventId(text: string): EventId | undefined {
  const [, stream, number] = /^(\d{1,15})-(\d{1,15})$/.exec(text.trim()) ?? [];
  return stream === undefined ? undefined : { stream: Number(stream), number: Number(number) };
}

/**
 * What a session's streams have carried, so that a client whose connection broke misses nothing (2025-11-25, "Resumability and
 * Redelivery"): the newest events of all streams, up to a limit, the newest one in any case.
 */
export class EventLog {
  readonly #events: (Piece & { readonly id: EventId })[] = [];
  /** The newest event of each stream that is no longer here. */
  readonly #forgotten = new Map<number, number>();
  #length = 0;

  push(event: Piece & { readonly id: EventId }): void {
    this.#events.push(event);
    this.#length += event.text.length;
    while (this.#events.length > 1 && (this.#events.length > MAX_EVENTS || this.#length > MAX_LENGTH)) {
      const oldest = this.#events.shift();
      if (oldest === undefined) return;
      this.#length -= oldest.text.length;
      this.#forgotten.delete(oldest.id.stream);
      this.#forgotten.set(oldest.id.stream, oldest.id.number);
      const [first] = this.#forgotten.keys();
      if (this.#forgotten.size > MAX_EVENTS && first !== undefined) this.#forgotten.delete(first);
    }
  }

  /** What followed an event on its stream; `undefined` when some of it is no longer here. */
  after({ stream, number }: EventId): readonly Piece[] | undefined {
    if ((this.#forgotten.get(stream) ?? 0) > number) return undefined;
    return this.#events.filter(({ id }) => id.stream === stream && id.number > number);
  }

  /** Whether a stream has ended with one of these events. */
  hasEndOf(stream: number): boolean {
    return this.#events.some(({ id, isLast }) => id.stream === stream && isLast);
  }
}
