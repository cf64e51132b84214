import { type EventId, EventLog, type Piece } from "./event-log.js";
import type { Exchange } from "./exchange.js";

/** The most requests and streams that a session has open at once. */
const MAX_STREAMS = 256;
/** The most messages of no request that wait for a stream; older ones are dropped. */
const MAX_UNHEARD = 256;

interface Stream {
  /** `undefined` while its client is away. */
  exchange: Exchange | undefined;
  /** How many events it has carried. */
  events: number;
  /** Whether its client, who is away, has seen the start of it and so can take it up again. */
  canResume: boolean;
}

interface Unheard {
  readonly text: string;
  readonly isQuestion: boolean;
}

/** The streams of one session: what the server says goes to the response that waits for it, or waits for one. */
export class Streams {
  readonly #open = new Map<number, Stream>();
  readonly #log = new EventLog();
  /** The stream of the session for what belongs to no request. */
  #own: number | undefined;
  /** Messages of no request while there is no such stream. */
  #unheard: Unheard[] = [];

  /** Whether anyone waits for the server. */
  get areUsed(): boolean {
    return [...this.#open.values()].some((stream) => stream.exchange !== undefined);
  }

  /** Opens the stream of a request; `false` when there are too many. */
  open(exchange: Exchange): boolean {
    if (this.#open.size >= MAX_STREAMS) return false;
    this.#put(exchange);
    // Somebody waits for the answer to a question, and the client may have no stream of its own for it.
    if (!this.#isOwnHeard()) {
      const unheard = this.#unheard;
      this.#unheard = unheard.filter(({ isQuestion }) => !isQuestion);
      for (const { text, isQuestion } of unheard) if (isQuestion) this.#send(exchange.number, text, false);
    }
    return true;
  }

  /**
   * Opens the session's own stream in place of an earlier one, or takes up a stream after an event; `false` when what followed
   * the event is not known any more.
   */
  listen(exchange: Exchange, after: EventId | undefined): boolean {
    if (after === undefined) {
      const earlier = this.#own;
      this.#own = exchange.number;
      if (earlier !== undefined) this.end(earlier);
      this.#put(exchange);
      this.#tellUnheard(exchange.number);
      return true;
    }
    const events = this.#log.after(after);
    const isOver = this.#log.hasEndOf(after.stream);
    const stream = this.#open.get(after.stream);
    if (events === undefined || (!isOver && stream === undefined)) return false;
    exchange.number = after.stream;
    const arrived = events.every((piece) => exchange.give(piece));
    if (stream !== undefined) {
      stream.exchange?.finish();
      stream.exchange = arrived ? exchange : undefined;
      exchange.onLeave(() => this.#left(after.stream, exchange));
    }
    if (stream === undefined || !arrived) exchange.finish();
    if (this.#own === after.stream) this.#tellUnheard(after.stream);
    return true;
  }

  /** Sends a message that ends no request, about one or about none. */
  tell(about: number | undefined, text: string, isQuestion: boolean): void {
    const stream = about === undefined ? undefined : this.#open.get(about);
    const canBeHeard = stream !== undefined && (isHeard(stream) || stream.canResume);
    const place = canBeHeard ? about : this.#isOwnHeard() ? this.#own : undefined;
    if (place !== undefined) this.#send(place, text, false);
    else {
      if (this.#unheard.length >= MAX_UNHEARD) this.#unheard.shift();
      this.#unheard.push({ text, isQuestion });
    }
  }

  /** Answers a request, whose stream ends with it. */
  answer(number: number, text: string): void {
    this.#send(number, text, true);
  }

  /** Ends a stream on which nothing follows. */
  end(number: number): void {
    this.#open.get(number)?.exchange?.finish();
    this.#open.delete(number);
  }

  /** Ends every stream. */
  close(): void {
    for (const number of [...this.#open.keys()]) this.end(number);
  }

  #put(exchange: Exchange): void {
    this.#open.set(exchange.number, { exchange, events: 0, canResume: false });
    exchange.onLeave(() => this.#left(exchange.number, exchange));
  }

  /** A client closed a stream. It may come back for the rest, and may be back already; the request goes on. */
  #left(number: number, exchange: Exchange): void {
    const stream = this.#open.get(number);
    if (stream?.exchange !== exchange) return;
    stream.exchange = undefined;
    stream.canResume = exchange.isStream || stream.events > 0;
  }

  #isOwnHeard(): boolean {
    const own = this.#own === undefined ? undefined : this.#open.get(this.#own);
    return own !== undefined && isHeard(own);
  }

  #tellUnheard(number: number): void {
    for (const { text } of this.#unheard.splice(0)) this.#send(number, text, false);
  }

  #send(number: number, text: string, isLast: boolean): void {
    const stream = this.#open.get(number);
    if (stream === undefined) return;
    stream.events += 1;
    const piece: Piece & { readonly id: EventId } = { id: { stream: number, number: stream.events }, text, isLast };
    // An answer by itself is no stream that could be resumed.
    if (!isLast || stream.events > 1 || (stream.exchange?.isStream ?? true)) this.#log.push(piece);
    const arrived = stream.exchange?.give(piece) ?? false;
    if (isLast) this.#open.delete(number);
    else if (!arrived) {
      // Whoever reads too slowly is cut off, and leaves.
      stream.exchange?.finish();
      stream.exchange = undefined;
      stream.canResume = true;
    }
  }
}

function isHeard({ exchange }: Stream): boolean {
  return exchange !== undefined && !exchange.isClosed;
}
