import { CrabletError, type ErrorKind, messageOf } from "../error.js";
import type { FailingPort, PortFailure } from "../mcp-port.js";
import type { NatsConnection, NatsEnvelope, NatsMessage, NatsRequestMessage, RpcFailure } from "./connection.js";
import { onRefusal, type Refusal } from "./refusals.js";

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
  /** Where it was published. */
  readonly subject: string;
  /** When something was heard of it, by `Date.now()`. */
  heard: number;
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
export class NatsPort implements FailingPort {
  readonly #options: NatsPortOptions;
  #listener: Listener | undefined;
  #subscription: { unsubscribe(): void } | undefined;
  #calls = new Map<string, Call>();
  #counter = 0;
  #timer: ReturnType<typeof setInterval> | undefined;
  #session: string | undefined;
  #onFailure: ((failure: PortFailure) => void) | undefined;
  #forgetRefusals: (() => void) | undefined;

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
    this.#forgetRefusals ??= onRefusal(connection, (refusal) => this.#refused(refusal));
    const end = (): void => this.#failAll("connection-closed", "the NATS connection is closed");
    connection.closed().then(end, end);
  }

  addFailureListener(listener: (failure: PortFailure) => void): void {
    this.#onFailure = listener;
  }

  removeEventListener(_type: "message", _listener: Listener): void {
    if (this.#session !== undefined && !this.#options.connection.isClosed()) {
      this.#options.connection.publish(`${this.#session}.end`);
    }
    this.#listener = undefined;
    this.#session = undefined;
    this.#forgetRefusals?.();
    this.#forgetRefusals = undefined;
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
    if (message.method === "initialize") this.#session = undefined;
    const { subject, isStream } = this.#options;
    const session = this.#sessionFor(message);
    const form = isStream ? ".stream" : session === undefined ? "" : ".call";
    this.#ask({ message, session, subject: `${session ?? subject}${form}`, heard: Date.now() });
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
        connection.publish(`${session}.call`, this.#fitting(message));
        if (message.method === "notifications/initialized" && this.#options.isStream) this.#listen(session);
      } else if (envelope !== undefined) {
        const body = envelope.encode(message);
        if (typeof body === "string" || body instanceof Uint8Array) connection.publish(subject, body);
      }
    } catch {
      // What waits for an answer is told; a notification on a connection that is gone is not.
    }
  }

  /** An answer to a question of the server, or in the place of one that is too large that it is: the server waits for it. */
  #fitting(message: NatsRequestMessage): string {
    const text = JSON.stringify(message);
    const { id, method } = message;
    const excess = id === undefined || method !== undefined ? undefined : this.#excess(text);
    if (excess === undefined) return text;
    return JSON.stringify({ jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message: `the answer ${excess}` } });
  }

  /** That something is larger than the NATS server takes, if it is. */
  #excess(body: string | Uint8Array): string | undefined {
    const size = typeof body === "string" ? new TextEncoder().encode(body).length : body.length;
    const limit = this.#options.connection.info?.max_payload;
    if (limit === undefined || size <= limit) return undefined;
    return `has ${size} bytes, and the NATS server takes at most ${limit} in a message (its max_payload)`;
  }

  /** Nobody waits for a request any more. */
  #cancel(id: unknown, isAlone: boolean): void {
    const { connection, subject, inbox, isStream } = this.#options;
    for (const [key, call] of this.#calls) {
      if (call.message.id !== id) continue;
      this.#calls.delete(key);
      if (isAlone && isStream) connection.publish(`${subject}.cancel`, `${inbox}.${key}`);
    }
  }

  #ask(call: Call): void {
    const { connection, envelope, inbox } = this.#options;
    try {
      const body = envelope === undefined ? JSON.stringify(call.message) : envelope.encode(call.message);
      if (body === undefined) {
        this.#fail(call, "protocol", "the envelope has no body for this request");
        return;
      }
      if (typeof body === "object" && !(body instanceof Uint8Array)) {
        this.#answer(call, "error" in body ? { error: body.error } : { result: body.answer });
        return;
      }
      const excess = this.#excess(body);
      if (excess !== undefined) {
        const message = `the request ${excess}. Nothing was sent: send less, or have the limit raised`;
        this.#fail(call, "limit", message);
        return;
      }
      this.#counter += 1;
      const key = String(this.#counter);
      this.#calls.set(key, call);
      this.#watch();
      connection.publish(call.subject, body, { reply: `${inbox}.${key}` });
    } catch (thrown) {
      this.#forget(call);
      const kind = connection.isClosed() ? "connection-closed" : kindOf(thrown, "network");
      this.#fail(call, kind, `the request was not sent over NATS: ${messageOf(thrown)}`);
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
      this.#calls.delete(key);
      this.#unheard(call);
      return;
    }
    if (event === "alive") return;
    if (event === "message") {
      this.#deliver(data);
      return;
    }
    this.#calls.delete(key);
    if (event === "end") {
      this.#fail(call, "connection-closed", "the shim ended the request without an answer");
      return;
    }
    const refused = headers?.get("Nats-Service-Error");
    if (refused) {
      const code = headers?.get("Nats-Service-Error-Code");
      this.#fail(call, "server", `the NATS service refused the request: ${refused}`, code);
      return;
    }
    let answer: Answer;
    try {
      const { envelope } = this.#options;
      answer = (envelope === undefined ? JSON.parse(TEXT.decode(data)) : envelope.decode(data, call.message)) as Answer;
      if (answer?.result === undefined && answer?.error === undefined)
        throw new Error("there is neither result nor error");
    } catch (thrown) {
      const kind = kindOf(thrown, "protocol");
      this.#fail(call, kind, `what came back over NATS is no answer: ${messageOf(thrown)}`);
      return;
    }
    if (answer.error?.code === SESSION_NOT_FOUND && call.session !== undefined) {
      this.#unheard(call);
      return;
    }
    // The shim itself says why there is an error in the place of the answer.
    const kind = headers?.get("Crablet-Error");
    if (kind && answer.error !== undefined) {
      this.#fail(call, kind, answer.error.message);
      return;
    }
    if (call.message.method === "initialize") this.#session = headers?.get("Crablet-Session") || undefined;
    this.#answer(call, answer);
  }

  /** A request that nobody took, and that was therefore not done. */
  #unheard(call: Call): void {
    if (call.session !== undefined) {
      // The client opens another, and sends the request there.
      this.#fail(call, "session-expired", "the session is gone with its shim; the request was not done");
      return;
    }
    const message = `nobody serves ${this.#options.subject} over NATS (no responders), so that nothing was done: is a crablet-shim running there that was told to serve it?`;
    this.#fail(call, "network", message);
  }

  /** What the NATS server does not let this user do. */
  #refused({ operation, subject }: Refusal): void {
    if (operation === "subscription") {
      const { inbox } = this.#options;
      if (subject === `${inbox}.*`)
        this.#failAll(
          "auth",
          `the NATS server does not let this user listen to ${subject}: see inboxPrefix, and the permissions in docs/nats.md`,
        );
      return;
    }
    for (const [key, call] of this.#calls) {
      if (call.subject !== subject) continue;
      this.#calls.delete(key);
      this.#fail(
        call,
        "auth",
        `the NATS server does not let this user publish to ${subject}, so that nothing was done: see the permissions in docs/nats.md`,
      );
    }
  }

  #answer({ message }: Call, { result, error }: Answer): void {
    const outcome = error === undefined ? { result } : { error };
    this.#listener?.({ data: { jsonrpc: "2.0", id: message.id, ...outcome } });
  }

  /** Ends a call without an answer. */
  #fail({ message: { id } }: Call, kind: ErrorKind, message: string, code?: string): void {
    if (id !== undefined) this.#onFailure?.({ id, kind, message, ...(code && { code }) });
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
        const kind = isStream ? "connection-closed" : "timeout";
        this.#fail(call, kind, `${what}. Whether the request was done is not known`);
      }
      if (this.#calls.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    }, LOOK_MS);
  }

  #failAll(kind: ErrorKind, message: string): void {
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) this.#fail(call, kind, `${message}. Whether the request was done is not known`);
  }
}

function isStateless({ params }: NatsRequestMessage): boolean {
  const meta = params?._meta as Readonly<Record<string, unknown>> | undefined;
  return meta?.[VERSION_KEY] !== undefined;
}

/** The kind of what an envelope threw, or another. */
function kindOf(thrown: unknown, otherwise: ErrorKind): ErrorKind {
  return CrabletError.is(thrown) ? thrown.kind : otherwise;
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

/** What a server is told whose question has an answer that cannot be sent. */
const INTERNAL_ERROR = -32_603;

/** How often silent calls are looked for. */
const LOOK_MS = 500;
