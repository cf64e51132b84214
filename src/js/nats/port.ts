import { messageOf } from "../error.js";
import type { McpPort } from "../mcp-port.js";
import type { NatsConnection, NatsEnvelope, NatsMessage, NatsRequestMessage, RpcFailure } from "./connection.js";

/** @internal */
export interface NatsPortOptions {
  readonly connection: NatsConnection;
  readonly subject: string;
  readonly envelope: NatsEnvelope | undefined;
  readonly isStream: boolean;
  readonly silenceMs: number;
  readonly inbox: string;
}

/** A request that is not answered yet. */
interface Call {
  readonly message: NatsRequestMessage;
  /** The session whose subject it went to. */
  readonly session: string | undefined;
  /** Whether it has gone to a session that was lost before. */
  readonly isSecond: boolean;
  /** When something was heard of it, by `Date.now()`. */
  heard: number;
  /** Takes the answer in place of the client. */
  readonly settle?: (answer: Answer, session: string | undefined) => void;
}

interface Answer {
  readonly result?: unknown;
  readonly error?: RpcFailure;
}

type Listener = (event: { readonly data: unknown }) => void;

/**
 * A port behind which is a subject of NATS.
 *
 * @internal
 */
export class NatsPort implements McpPort {
  readonly #options: NatsPortOptions;
  #listener: Listener | undefined;
  #subscription: { unsubscribe(): void } | undefined;
  #calls = new Map<string, Call>();
  #counter = 0;
  #timer: ReturnType<typeof setInterval> | undefined;
  /** What a session begins with, to begin another. */
  #initialize: NatsRequestMessage | undefined;
  #session: string | undefined;
  /** Whether the session is gone and no other is open yet. */
  #isLost = false;
  #renewing: Promise<void> | undefined;

  constructor(options: NatsPortOptions) {
    this.#options = options;
  }

  addEventListener(_type: "message", listener: Listener): void {
    const { connection, inbox } = this.#options;
    this.#listener = listener;
    this.#subscription ??= connection.subscribe(`${inbox}.*`, {
      callback: (error, message) => {
        // What the subscription has to say itself shows in the requests, which stay unanswered.
        if (error === null || message?.subject !== undefined) this.#receive(message);
      },
    });
    const end = (): void => this.#failAll("the NATS connection is closed");
    connection.closed().then(end, end);
  }

  removeEventListener(_type: "message", _listener: Listener): void {
    if (this.#session !== undefined && !this.#options.connection.isClosed()) {
      this.#options.connection.publish(`${this.#session}.end`);
    }
    this.#listener = undefined;
    this.#session = undefined;
    this.#isLost = false;
    this.#initialize = undefined;
    this.#calls.clear();
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
  }

  postMessage(given: unknown): void {
    const message = given as NatsRequestMessage;
    if (message.id !== undefined && message.method !== undefined) this.#request(message);
    else this.#tell(message);
  }

  #request(message: NatsRequestMessage): void {
    if (message.method === "initialize") {
      this.#initialize = message;
      this.#session = undefined;
      this.#isLost = false;
    }
    const call = { message, session: this.#sessionFor(message), isSecond: false, heard: Date.now() };
    if (this.#isLost && !isStateless(message)) this.#again(call);
    else this.#ask(call);
  }

  /** A message that says its revision stands alone, whatever session there is. */
  #sessionFor(message: NatsRequestMessage): string | undefined {
    return isStateless(message) ? undefined : this.#session;
  }

  /** What has no answer. */
  #tell(message: NatsRequestMessage): void {
    const { connection, subject, envelope } = this.#options;
    const session = this.#sessionFor(message);
    try {
      if (message.method === "notifications/cancelled") this.#cancel(message.params?.requestId, session === undefined);
      if (session !== undefined) {
        connection.publish(`${session}.call`, JSON.stringify(message));
        if (message.method === "notifications/initialized" && this.#options.isStream) this.#listen(session);
      } else if (envelope !== undefined) {
        const body = envelope.encode(message);
        if (typeof body === "string" || body instanceof Uint8Array) connection.publish(subject, body);
      }
    } catch {
      // What waits for an answer is told; a notification on a connection that is gone is not.
    }
  }

  /** Nobody waits for a request any more. */
  #cancel(id: unknown, isAlone: boolean): void {
    const { connection, subject, inbox, isStream } = this.#options;
    for (const [key, call] of this.#calls) {
      if (call.message.id !== id || call.settle !== undefined) continue;
      this.#calls.delete(key);
      if (isAlone && isStream) connection.publish(`${subject}.cancel`, `${inbox}.${key}`);
    }
  }

  #ask(call: Call): void {
    const { connection, subject, envelope, inbox, isStream } = this.#options;
    try {
      const body = envelope === undefined ? JSON.stringify(call.message) : envelope.encode(call.message);
      if (body === undefined) {
        this.#end(call, { error: failure("the envelope has no body for this request") });
        return;
      }
      if (typeof body === "object" && !(body instanceof Uint8Array)) {
        this.#end(call, "error" in body ? { error: body.error } : { result: body.answer });
        return;
      }
      const size = typeof body === "string" ? new TextEncoder().encode(body).length : body.length;
      const limit = connection.info?.max_payload;
      if (limit !== undefined && size > limit) {
        const message = `the request has ${size} bytes, and the NATS server takes at most ${limit} in a message (its max_payload). Nothing was sent: send less, or have the limit raised`;
        this.#end(call, { error: failure(message) });
        return;
      }
      this.#counter += 1;
      const key = String(this.#counter);
      this.#calls.set(key, call);
      this.#watch();
      const form = isStream ? ".stream" : call.session === undefined ? "" : ".call";
      connection.publish(`${call.session ?? subject}${form}`, body, { reply: `${inbox}.${key}` });
    } catch (thrown) {
      this.#forget(call);
      this.#end(call, { error: failure(`the request was not sent over NATS: ${messageOf(thrown)}`) });
    }
  }

  /** What a session tells beside its requests. */
  #listen(session: string): void {
    const { connection, inbox } = this.#options;
    connection.publish(`${session}.listen`, "", { reply: `${inbox}.${LISTEN_KEY}` });
  }

  #receive({ subject, data, headers }: NatsMessage): void {
    const key = subject.slice(this.#options.inbox.length + 1);
    const call = this.#calls.get(key);
    const event = headers?.get("Crablet-Event");
    if (call === undefined) {
      // Of a call that is over nothing is of interest, but what a session tells belongs to none.
      if (key === LISTEN_KEY && event === "message") this.#deliver(data);
      return;
    }
    call.heard = Date.now();
    if (headers?.code === NO_RESPONDERS) {
      this.#unheard(key, call);
      return;
    }
    if (event === "alive") return;
    if (event === "message") {
      this.#deliver(data);
      return;
    }
    this.#calls.delete(key);
    if (event === "end") {
      this.#end(call, { error: failure("the shim ended the request without an answer") });
      return;
    }
    const refused = headers?.get("Nats-Service-Error");
    if (refused) {
      this.#end(call, { error: failure(`the NATS service refused the request: ${refused}`) });
      return;
    }
    let answer: Answer;
    try {
      const { envelope } = this.#options;
      answer = (envelope === undefined ? JSON.parse(TEXT.decode(data)) : envelope.decode(data, call.message)) as Answer;
      if (answer?.result === undefined && answer?.error === undefined)
        throw new Error("there is neither result nor error");
    } catch (thrown) {
      this.#end(call, { error: failure(`what came back over NATS is no answer: ${messageOf(thrown)}`) });
      return;
    }
    if (answer.error?.code === SESSION_NOT_FOUND && call.session !== undefined) {
      this.#again(call);
      return;
    }
    this.#end(call, answer, headers?.get("Crablet-Session") || undefined);
  }

  /** A request that NATS gave to nobody, and that was therefore not done. */
  #unheard(key: string, call: Call): void {
    this.#calls.delete(key);
    if (call.session !== undefined) {
      this.#again(call);
      return;
    }
    const message = `nobody serves ${this.#options.subject} over NATS (no responders), so that nothing was done: is a crablet-shim running there that was told to serve it, and may this user publish to it?`;
    this.#end(call, { error: failure(message) });
  }

  /** Sends a request that its session did not take to another one, once. */
  #again(call: Call): void {
    if (call.isSecond) {
      this.#end(call, { error: failure("the session was lost twice; the request was not done") });
      return;
    }
    if (this.#session !== undefined && this.#session === call.session) {
      this.#session = undefined;
      this.#isLost = true;
    }
    // A straggler of the old session finds the new one there.
    this.#renewing ??= this.#isLost ? this.#renew().finally(() => (this.#renewing = undefined)) : undefined;
    const renewed = this.#renewing ?? Promise.resolve();
    renewed.then(
      () => this.#ask({ ...call, session: this.#session, isSecond: true, heard: Date.now() }),
      (thrown) =>
        this.#end(call, { error: failure(`the session is lost, and no other was opened: ${messageOf(thrown)}`) }),
    );
  }

  /** Opens a session in place of one whose shim is gone. */
  async #renew(): Promise<void> {
    const initialize = this.#initialize;
    if (initialize === undefined) throw new Error("it was never opened here");
    const session = await new Promise<string | undefined>((resolve, reject) => {
      const settle = ({ error }: Answer, opened: string | undefined): void =>
        error === undefined ? resolve(opened) : reject(new Error(error.message));
      const message = { ...initialize, id: "crablet-session" };
      this.#ask({ message, session: undefined, isSecond: true, heard: Date.now(), settle });
    });
    this.#session = session;
    this.#isLost = false;
    if (session === undefined) return;
    const { connection, isStream } = this.#options;
    connection.publish(`${session}.call`, JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }));
    if (isStream) this.#listen(session);
    const text = "the session was lost with its shim; a new one was opened, which knows nothing of what was before";
    const params = { level: "warning", logger: "crablet/nats", data: text };
    this.#listener?.({ data: { jsonrpc: "2.0", method: "notifications/message", params } });
  }

  /** Ends a call with its answer. */
  #end(call: Call, answer: Answer, session?: string): void {
    if (call.settle !== undefined) {
      call.settle(answer, session);
      return;
    }
    if (call.message.method === "initialize") this.#session = session;
    const { result, error } = answer;
    const outcome = error === undefined ? { result } : { error };
    this.#listener?.({ data: { jsonrpc: "2.0", id: call.message.id, ...outcome } });
  }

  #deliver(data: Uint8Array): void {
    let message: unknown;
    try {
      message = JSON.parse(TEXT.decode(data));
    } catch {
      // A message that is none is nobody's answer.
      return;
    }
    this.#listener?.({ data: message });
  }

  #forget(call: Call): void {
    for (const [key, other] of this.#calls) if (other === call) this.#calls.delete(key);
  }

  /** Looks after the calls while there are some. */
  #watch(): void {
    this.#timer ??= setInterval(() => {
      const { silenceMs, isStream } = this.#options;
      const least = Date.now() - silenceMs;
      for (const [key, call] of this.#calls) {
        if (call.heard > least) continue;
        this.#calls.delete(key);
        const what = isStream
          ? `the shim that took the request gave no sign of life for ${silenceMs} ms: it is gone, or cannot be reached`
          : `no answer came over NATS within ${silenceMs} ms`;
        this.#end(call, { error: failure(`${what}. Whether the request was done is not known; it is not sent again`) });
      }
      if (this.#calls.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    }, LOOK_MS);
  }

  #failAll(message: string): void {
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) {
      this.#end(call, { error: failure(`${message}. Whether the request was done is not known`) });
    }
  }
}

function isStateless({ params }: NatsRequestMessage): boolean {
  const meta = params?._meta as Readonly<Record<string, unknown>> | undefined;
  return meta?.[VERSION_KEY] !== undefined;
}

function failure(message: string): RpcFailure {
  return { code: TRANSPORT_FAILED, message };
}

const TEXT = new TextDecoder();

/** Says of which revision a request is that belongs to no session. */
const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";

/** The end of the reply subject for what a session tells beside its requests. */
const LISTEN_KEY = "listen";

/** The status with which a NATS server says that nobody listens. */
const NO_RESPONDERS = 503;

/** What a shim answers for a session that has ended: the request was not begun. */
const SESSION_NOT_FOUND = -32_001;

/** The first code that JSON-RPC leaves to implementations. */
const TRANSPORT_FAILED = -32_000;

/** How often silent calls are looked for. */
const LOOK_MS = 500;
