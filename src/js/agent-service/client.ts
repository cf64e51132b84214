import { CrabletError, messageOf } from "../error.js";
import { toJson } from "../json.js";
import { contentOf, type Input, type Message } from "../message.js";
import { outputOf } from "../tool.js";
import { Transcript } from "../transcript.js";
import {
  decode,
  encode,
  type JetStream,
  type JetStreamConsumer,
  type JetStreamMessage,
  type NatsConnection,
  natsError,
  nonce,
  Streams,
} from "./nats.js";
import {
  namesOf,
  type Names,
  parseEvents,
  type ServiceInput,
  type ServiceName,
  type SessionEvent,
} from "./protocol.js";
import { PATIENCE_MS } from "./store.js";

/** A client of an agent service. */
export interface AgentClientOptions extends ServiceName {
  /** An open connection, in a browser one of `wsconnect()`. */
  readonly connection: NatsConnection;
  /** `jetstream(connection)`. */
  readonly jetstream: JetStream;
  /** How long an input is sent again while the server is away, in milliseconds. Default 30 000. */
  readonly patienceMs?: number;
}

/** What the stream says of an input that it has stored. */
export interface InputReceipt {
  /** The id that events name the input by. */
  readonly inputId: string;
  /** Whether an input with this id was stored before: nothing more comes of this one. */
  readonly isDuplicate: boolean;
}

/** An event and where it stands. */
export interface PlacedEvent {
  readonly event: SessionEvent;
  /** For `events({ after })`: what comes behind this event. */
  readonly cursor: string;
}

/** A conversation that a worker of the service keeps. */
export interface RemoteSession {
  readonly id: string;
  /**
   * Sends a prompt. Resolves once it is stored; a run begins when its turn comes. An `id` of your own makes sending it again
   * harmless, within the service's `duplicateMs`.
   */
  prompt(input: Input, options?: InputOptions): Promise<InputReceipt>;
  /** A message that is worked on when the run would otherwise end; without a run it begins one. */
  followUp(input: Input, options?: InputOptions): Promise<InputReceipt>;
  /** A message that the run takes before its next step. Without a run it is refused. */
  steer(input: Input, options?: InputOptions): Promise<InputReceipt>;
  /** Aborts the run. Prompts that wait are worked on all the same. */
  abort(reason?: string, options?: InputOptions): Promise<InputReceipt>;
  /** Decides about a call that an `approval-request` told of; with its `inputHash` about no other input. */
  approve(
    callId: string,
    allow?: boolean,
    options?: InputOptions & { readonly reason?: string; readonly inputHash?: string },
  ): Promise<InputReceipt>;
  /** Gives the result of a call of a client-side tool: the answer to a question. */
  toolResult(callId: string, output: unknown, options?: InputOptions): Promise<InputReceipt>;
  /**
   * The events in their order. `after` is the cursor of the last one that was seen, or `"new"` for those from now on; without it
   * all that are kept come. Ends with the signal, or when the loop is left.
   */
  events(options?: { readonly after?: string; readonly signal?: AbortSignal }): AsyncIterable<PlacedEvent>;
  /**
   * Sends a prompt and gives the events of its run, from its `input-accepted` on, until it ends or waits for a person. Leaving the loop does not abort the run.
   *
   * @throws CrabletError what the input was refused with; what the session failed with when no worker can go on with it.
   */
  run(input: Input, options?: InputOptions & { readonly signal?: AbortSignal }): AsyncIterable<PlacedEvent>;
}

/** How an input is sent. */
export interface InputOptions {
  /** An id that tells this input from others of the service. Default: a random one. */
  readonly id?: string;
}

/** Talks to the workers of an agent service. */
export function agentClient(options: AgentClientOptions): {
  /** The session of this id, which begins with its first input. */
  session(id: string): RemoteSession;
} {
  const names = namesOf(options);
  const streams = new Streams(options.connection, options.jetstream, options.patienceMs ?? PATIENCE_MS);
  return { session: (id) => new Remote(streams, names, id) };
}

/** What an input says beside its id. */
type Body = ServiceInput extends infer Each ? (Each extends unknown ? Omit<Each, "id"> : never) : never;

class Remote implements RemoteSession {
  readonly #streams: Streams;
  readonly #names: Names;
  readonly id: string;

  constructor(streams: Streams, names: Names, id: string) {
    this.#streams = streams;
    this.#names = names;
    this.id = id;
    // Says at once that an id is too long.
    names.input(id);
  }

  prompt(input: Input, options?: InputOptions): Promise<InputReceipt> {
    return this.#send({ type: "prompt", content: contentOf(input) }, options);
  }

  followUp(input: Input, options?: InputOptions): Promise<InputReceipt> {
    return this.#send({ type: "follow-up", content: contentOf(input) }, options);
  }

  steer(input: Input, options?: InputOptions): Promise<InputReceipt> {
    return this.#send({ type: "steer", content: contentOf(input) }, options);
  }

  abort(reason?: string, options?: InputOptions): Promise<InputReceipt> {
    return this.#send({ type: "abort", ...(reason !== undefined && { reason }) }, options);
  }

  approve(
    callId: string,
    allow = true,
    { id, ...rest }: InputOptions & { readonly reason?: string; readonly inputHash?: string } = {},
  ): Promise<InputReceipt> {
    return this.#send({ type: "approve", callId, allow, ...rest }, id === undefined ? {} : { id });
  }

  toolResult(callId: string, output: unknown, options?: InputOptions): Promise<InputReceipt> {
    return this.#send({ type: "tool-result", callId, output }, options);
  }

  async *events({
    after,
    signal,
  }: {
    readonly after?: string;
    readonly signal?: AbortSignal;
  } = {}): AsyncGenerator<PlacedEvent, void> {
    const [seen, index] = after === undefined || after === "new" ? [0, -1] : cursorOf(after);
    const start = after === "new" ? NEW : seen > 0 ? { deliver_policy: "by_start_sequence", opt_start_seq: seen } : {};
    yield* this.#read(await this.#consume(start, signal), { seen, index, signal });
  }

  /** Begins to hear events, from a place on. */
  async #consume(start: object, signal: AbortSignal | undefined): Promise<Hearing> {
    const { stream, subject } = this.#names.events(this.id);
    signal?.throwIfAborted();
    try {
      const consumer = await this.#streams.patiently(() =>
        this.#streams.jetstream.consumers.get(stream, { filter_subjects: subject, ...start }),
      );
      return { consumer, messages: await consumer.consume({ max_messages: 100, expires: PULL_MS }) };
    } catch (thrown) {
      throw natsError(thrown, "the events of a session could not be read");
    }
  }

  async *#read(
    { consumer, messages }: Hearing,
    from: { readonly seen: number; readonly index: number; readonly signal: AbortSignal | undefined },
  ): AsyncGenerator<PlacedEvent, void> {
    const { seen, index, signal } = from;
    const close = (): void => void messages.close().catch(() => {});
    signal?.addEventListener("abort", close, { once: true });
    let previous = seen > 0 ? seen : undefined;
    try {
      for await (const { seq, data } of messages) {
        const message = parseEvents(decode(data));
        if (message === undefined) continue;
        if (previous !== undefined && seq !== previous && message.previous !== previous)
          yield { event: { type: "events-missed" }, cursor: `${seq}.-1` };
        previous = seq;
        for (const [place, event] of message.events.entries()) {
          if (seq === seen && place <= index) continue;
          yield { event, cursor: `${seq}.${place}` };
        }
      }
      signal?.throwIfAborted();
    } finally {
      signal?.removeEventListener("abort", close);
      close();
      consumer.delete().catch(() => {});
    }
  }

  async *run(
    input: Input,
    { id = nonce(), signal }: InputOptions & { readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<PlacedEvent, void> {
    // Hears before it speaks, so that nothing is missed.
    const hearing = await this.#consume(NEW, signal);
    const { isDuplicate } = await this.prompt(input, { id });
    const events = this.#read(hearing, { seen: 0, index: -1, signal });
    yield* untilEnd(isDuplicate ? this.events(signal === undefined ? {} : { signal }) : events, id);
  }

  async #send(body: Body, { id = nonce() }: InputOptions = {}): Promise<InputReceipt> {
    const { subject } = this.#names.input(this.id);
    const given = body.type === "tool-result" ? { ...body, output: outputOf(body.output) } : body;
    const payload = encode(toJson({ v: 1, id, ...given }, "the input"));
    if (payload.length > this.#streams.maxBytes) {
      const message = `an input of ${payload.length} bytes is longer than the ${this.#streams.maxBytes} that the server takes: give files by their address`;
      throw new CrabletError({ kind: "limit", message });
    }
    try {
      const { duplicate } = await this.#streams.patiently(() =>
        this.#streams.jetstream.publish(subject, payload, { msgID: id }),
      );
      return { inputId: id, isDuplicate: duplicate };
    } catch (thrown) {
      throw natsError(
        thrown,
        `the input could not be sent (is a worker of this service set up?): ${messageOf(thrown)}`,
      );
    }
  }
}

/** The events of the run of an input, until it ends or waits. */
async function* untilEnd(events: AsyncIterable<PlacedEvent>, id: string): AsyncGenerator<PlacedEvent, void> {
  let isMine = false;
  for await (const placed of events) {
    const { event } = placed;
    if (event.type === "input-refused" && event.inputId === id) throw new CrabletError(event.error);
    isMine ||= event.type === "input-accepted" && event.inputId === id;
    if (!isMine) continue;
    if (event.type === "session-failed") throw new CrabletError(event.error);
    yield placed;
    if (event.type === "run-end" || event.type === "run-suspended") return;
  }
}

/** A consumer of events that hears. */
interface Hearing {
  readonly consumer: JetStreamConsumer;
  readonly messages: AsyncIterable<JetStreamMessage> & { close(): Promise<unknown> };
}

/** How long a request for events stands. A consumer that is gone, since the server was started anew, is noticed within it. */
const PULL_MS = 5_000;
/** From now on. */
const NEW = { deliver_policy: "new" };

/** The sequence of a message and the place in it. */
function cursorOf(cursor: string): [number, number] {
  const [, seq, place] = /^(\d+)\.(-?\d+)$/.exec(cursor) ?? [];
  if (seq === undefined)
    throw new CrabletError({ kind: "invalid-input", message: `${JSON.stringify(cursor)} is no cursor of an event` });
  return [Number(seq), Number(place)];
}

/**
 * The messages of a session, put together from its events: also where another worker went on, and what was shown before did
 * not hold.
 */
export class RemoteTranscript {
  #transcript = new Transcript();

  /** The messages so far. */
  get messages(): readonly Message[] {
    return this.#transcript.messages;
  }

  /** Takes in the next event. */
  apply(event: SessionEvent): void {
    switch (event.type) {
      case "session-restored": {
        const first = event.messages[0];
        const place = this.messages.findIndex(({ id }) => id !== undefined && id === first?.id);
        const before = first === undefined ? [] : place === -1 ? this.messages : this.messages.slice(0, place);
        this.#transcript = new Transcript([...before, ...event.messages]);
        for (const result of event.results)
          this.#transcript.apply({ ...result, type: "tool-result", output: result.output, runId: "", step: 0 });
        break;
      }
      case "input-accepted":
      case "input-refused":
      case "session-failed":
      case "event-too-long":
      case "events-missed":
        break;
      default:
        this.#transcript.apply(event);
    }
  }
}
