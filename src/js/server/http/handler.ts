import { invalidInput } from "../../error.js";
import type { MaybePromise } from "../../tool.js";
import type { Caller } from "../catalog.js";
import type { McpServer } from "../mcp-server.js";
import { CODE, type Fields, fields, RpcFault } from "../protocol.js";
import { answerTo, empty, eventStream, failed, type Framing, lostEvents, noSession, notAllowed } from "./answer.js";
import { readBody } from "./body.js";
import { type EventId, readEventId } from "./event-log.js";
import { Exchange } from "./exchange.js";
import { Gate, preflight, readable } from "./gate.js";
import { checkMedia, isStateless, type Part, partOf } from "./head.js";
import { BadMessage, type Posted, readMessage } from "./message.js";
import { checkArguments } from "./mirrored.js";
import { Session } from "./session.js";

/** How a server answers over HTTP. */
export interface HttpHandlerOptions {
  /**
   * Under which names the server is reached, as the `Host` header says it; one without a port counts with any. Default:
   * `localhost`, `127.0.0.1` and `[::1]`, so that it is for this machine. `"any"` only where something else protects it, such as
   * a token or a proxy that knows its names.
   */
  readonly hosts?: readonly string[] | "any";
  /**
   * The origins whose pages may use the server, such as `https://app.example`. Pages of the server's own origin may, unless `hosts`
   * is `"any"`, and so may programs, which send no `Origin`. Default: none.
   */
  readonly origins?: readonly string[];
  /**
   * Decides on each request before its body is read: a `Response` refuses it, and is the answer; a caller or nothing lets it in.
   * The session of a caller is there for no other. What it throws rejects the handler's promise, which platforms answer with 500.
   */
  readonly authorize?: (request: Request) => MaybePromise<Response | Caller | undefined | void>;
  /**
   * Whether clients of the handshake era get sessions, which live in the memory of this program. Without them, as where each request
   * may reach another instance, their requests stand alone, and tools cannot ask them for anything. Default: true.
   */
  readonly sessions?: boolean;
  /**
   * The most sessions. One more takes the place of the one that was not used for the longest time and has no open request; if there
   * is none, it is refused with 503. Default: 128.
   */
  readonly maxSessions?: number;
  /** How long a session lives without a request or an open stream, in milliseconds. Default: half an hour. */
  readonly sessionIdleMs?: number;
  /** The most requests at work that belong to no session, subscriptions among them; more are refused with 503. Default: 1024. */
  readonly maxRequests?: number;
  /** The longest body, in bytes; a longer one is refused with 413, one that takes longer than 30 s with 408. Default: 4 MiB. */
  readonly maxBodyBytes?: number;
}

/** Answers requests. Rejects only with what `authorize` throws. */
export interface HttpHandler {
  (request: Request): Promise<Response>;
  /** Ends every session and stream. Requests that come later are answered, and begin new ones. */
  close(): void;
}

/**
 * Serves over Streamable HTTP, for clients of both eras: a function from `Request` to `Response`, as service workers, Cloudflare
 * Workers, Deno and Bun take it; for Node see `nodeListener`. It answers whatever path it is given.
 *
 * @throws CrabletError `invalid-input` for what is no origin, and for limits that are no positive numbers.
 */
export function httpHandler(server: McpServer, options: HttpHandlerOptions = {}): HttpHandler {
  const serving = new HttpServing(server, options);
  return Object.assign((request: Request) => serving.answer(request), { close: () => serving.close() });
}

class HttpServing {
  readonly #server: McpServer;
  readonly #gate: Gate;
  readonly #authorize: HttpHandlerOptions["authorize"];
  readonly #hasSessions: boolean;
  readonly #limits: {
    readonly sessions: number;
    readonly idleMs: number;
    readonly requests: number;
    readonly body: number;
  };
  readonly #sessions = new Map<string, Session>();
  /** The requests that belong to no session, and how each is ended. */
  readonly #requests = new Set<() => void>();
  #nextExchange = 1;

  constructor(server: McpServer, options: HttpHandlerOptions) {
    this.#server = server;
    this.#gate = new Gate(options.hosts ?? Gate.loopback, options.origins ?? []);
    this.#authorize = options.authorize;
    this.#hasSessions = options.sessions ?? true;
    this.#limits = {
      sessions: options.maxSessions ?? 128,
      idleMs: options.sessionIdleMs ?? 30 * 60_000,
      requests: options.maxRequests ?? 1_024,
      body: options.maxBodyBytes ?? 4 * 1024 * 1024,
    };
    for (const limit of Object.values(this.#limits))
      if (!(limit > 0)) throw invalidInput(`a limit of a handler is a positive number, and not ${limit}`);
  }

  async answer(request: Request): Promise<Response> {
    const refused = this.#gate.check(request);
    if (refused !== undefined) return refused;
    const response = preflight(request) ?? (await this.#admit(request));
    return readable(request, response);
  }

  close(): void {
    for (const name of [...this.#sessions.keys()]) this.#end(name);
    for (const end of [...this.#requests]) end();
  }

  async #admit(request: Request): Promise<Response> {
    const { method, headers } = request;
    const decided = await this.#authorize?.(request);
    // One of another realm, or of a polyfill, is no instance.
    if (isResponse(decided)) return decided;
    if (!["POST", "GET", "DELETE"].includes(method)) return notAllowed("POST, GET, DELETE");
    const status = checkMedia(method, headers);
    if (status !== undefined) return empty(status);
    this.#forgetUnused();
    return method === "POST" ? this.#post(request, decided ?? undefined) : this.#bodyless(request, decided?.id);
  }

  #bodyless(request: Request, caller: string | undefined): Response {
    const { method, headers } = request;
    const name = headers.get("mcp-session-id")?.trim();
    // The stateless era has neither sessions nor streams of their own.
    if (!this.#hasSessions || name === undefined || isStateless(headers)) return notAllowed("POST");
    const given = method === "GET" ? headers.get("last-event-id") : null;
    const after = given === null ? undefined : readEventId(given);
    if (given !== null && after === undefined) return lostEvents();
    const session = this.#session(name, caller);
    if (session === undefined) return noSession();
    if (method === "GET") return this.#listen(session, after, request);
    this.#end(name);
    return empty(204);
  }

  #listen(session: Session, after: EventId | undefined, request: Request): Response {
    const exchange = this.#exchange(request);
    return session.listen(exchange, after) ? eventStream(exchange, after === undefined) : lostEvents();
  }

  async #post(request: Request, caller: Caller | undefined): Promise<Response> {
    const body = await readBody(request, this.#limits.body);
    if (typeof body === "number") return empty(body);
    let posted: Posted;
    let part: Part;
    try {
      posted = readMessage(body);
      const method = posted.kind === "request" ? posted.method : undefined;
      part = this.#part(request, posted, method);
    } catch (thrown) {
      if (thrown instanceof BadMessage) return failed(400, thrown.id, thrown.fault);
      if (thrown instanceof Refused) return failed(400, thrown.id, thrown.fault);
      throw thrown;
    }
    const { message } = posted;
    if (posted.kind === "request") return this.#ask(request, posted.id, posted.method, message, part, caller);
    if (part.kind === "session") {
      const session = this.#session(part.session, caller?.id);
      if (session === undefined) return noSession();
      session.tell(message);
      return empty(202);
    }
    // Outside of sessions there are no notifications over HTTP: whoever ends a request closes its stream.
    if (posted.kind === "notification") return empty(202);
    const why = "nothing was asked that could be answered in this way";
    return failed(400, null, new RpcFault(CODE.invalidRequest, why));
  }

  #part({ headers }: Request, posted: Posted, method: string | undefined): Part {
    const params = fields(posted.message.params) ?? {};
    try {
      const part = partOf(headers, method, params, this.#hasSessions);
      if (part.kind === "stateless" && method === "tools/call") {
        const schema = this.#server.inputSchema(String(params.name));
        checkArguments(schema, params.arguments, headers);
      }
      return part;
    } catch (thrown) {
      if (thrown instanceof RpcFault) throw new Refused(posted.kind === "request" ? posted.id : null, thrown);
      throw thrown;
    }
  }

  async #ask(
    request: Request,
    id: string | number,
    method: string,
    message: Fields,
    part: Part,
    caller: Caller | undefined,
  ): Promise<Response> {
    if (part.kind === "stateless") return this.#askOnce(request, id, message, caller, "stateless");
    if (part.kind === "unbound") {
      const version = method === "initialize" ? undefined : part.version;
      return this.#askOnce(request, id, message, caller, "unbound", version);
    }
    if (part.kind === "session") {
      const session = this.#session(part.session, caller?.id);
      return session === undefined ? noSession() : this.#askSession(request, id, message, session);
    }
    if (!this.#hasRoom()) return busy(id, "there are too many sessions; try again later");
    const session = new Session((send) => this.#server.open(send, caller), caller?.id);
    const name = randomName();
    this.#sessions.set(name, session);
    const response = await this.#askSession(request, id, message, session);
    if (session.isInitialized) response.headers.set("mcp-session-id", name);
    else this.#end(name);
    return response;
  }

  async #askSession(request: Request, id: string | number, message: Fields, session: Session): Promise<Response> {
    const exchange = this.#exchange(request);
    const refused = session.ask(id, message, exchange);
    if (refused !== undefined) return failed(400, id, new RpcFault(CODE.invalidRequest, refused));
    return answerTo(exchange, "session");
  }

  /** Answers a request that stands alone: a connection of its own, which ends with it. */
  async #askOnce(
    request: Request,
    id: string | number,
    message: Fields,
    caller: Caller | undefined,
    framing: Framing,
    version?: string,
  ): Promise<Response> {
    if (this.#requests.size >= this.#limits.requests) return busy(id, "too many requests are at work; try again later");
    const exchange = this.#exchange(request);
    let isGreeting = version !== undefined;
    const connection = this.#server.open((said) => {
      if (isGreeting) return;
      const isLast = typeof said.method !== "string";
      const arrived = exchange.give({ text: JSON.stringify(said), isLast });
      if (isLast || !arrived) end();
    }, caller);
    const end = () => {
      this.#requests.delete(end);
      connection.close();
      exchange.finish();
    };
    this.#requests.add(end);
    // A client that is gone wants nothing more.
    exchange.onLeave(end);
    if (version !== undefined) {
      const params = { protocolVersion: version, capabilities: {} };
      connection.receive({ jsonrpc: "2.0", id: "initialize", method: "initialize", params });
    }
    isGreeting = false;
    connection.receive(message);
    return answerTo(exchange, framing);
  }

  #session(name: string, caller: string | undefined): Session | undefined {
    const session = this.#sessions.get(name);
    if (session?.isOf(caller) !== true) return undefined;
    session.use();
    return session;
  }

  #end(name: string): void {
    const session = this.#sessions.get(name);
    this.#sessions.delete(name);
    session?.close();
  }

  #forgetUnused(): void {
    const limit = Date.now() - this.#limits.idleMs;
    for (const [name, { unusedSince }] of this.#sessions)
      if (unusedSince !== undefined && unusedSince <= limit) this.#end(name);
  }

  /** Whether a further session may begin, now that the one which was not used for the longest time has ended if it had to. */
  #hasRoom(): boolean {
    if (this.#sessions.size < this.#limits.sessions) return true;
    let oldest: { readonly name: string; readonly since: number } | undefined;
    for (const [name, { unusedSince: since }] of this.#sessions)
      if (since !== undefined && (oldest === undefined || since < oldest.since)) oldest = { name, since };
    if (oldest !== undefined) this.#end(oldest.name);
    return oldest !== undefined;
  }

  #exchange(request: Request): Exchange {
    this.#nextExchange += 1;
    return new Exchange(this.#nextExchange, request.signal);
  }
}

/** A request whose headers or parameters are wrong. */
class Refused extends Error {
  readonly id: string | number | null;
  readonly fault: RpcFault;

  constructor(id: string | number | null, fault: RpcFault) {
    super(fault.message);
    this.id = id;
    this.fault = fault;
  }
}

function busy(id: string | number, why: string): Response {
  return failed(503, id, new RpcFault(CODE.internal, why));
}

function isResponse(decided: Response | Caller | undefined | void): decided is Response {
  return typeof decided === "object" && decided !== null && typeof (decided as Response).arrayBuffer === "function";
}

/** A name that cannot be guessed. */
function randomName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
