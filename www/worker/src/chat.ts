// A conversation in a Durable Object. Any number of browsers watch it over WebSockets that outlive the object's own life.
import { DurableObject } from "cloudflare:workers";
import type { Agent, Message, Run, Session } from "crablet";
import { durableObjectStore } from "crablet/stores";
import { agentOf, APPROVAL_LIMIT, type Tools } from "./agent.js";
import type { Env } from "./env.js";

/** What a browser asks for. */
export type Request =
  | { readonly type: "send"; readonly text: string }
  | { readonly type: "decide"; readonly callId: string; readonly allow: boolean }
  | { readonly type: "stop" };

/** The longest message of a browser, in characters. */
const MAX_MESSAGE = 100_000;

/** The most browsers that watch one conversation. */
const MAX_WATCHERS = 50;

/**
 * The object may be evicted at any time. While it rests, because nothing is at work or a person is asked, it costs nothing and
 * its WebSockets stay open; the next message starts it again. When it is evicted in the middle of a run, the next message or
 * the alarm starts it, and the run goes on from the last checkpoint.
 */
export class Chat extends DurableObject<Env> {
  readonly #agent: Agent<Tools>;
  #opening: Promise<Session<Tools>> | undefined;
  /** The run that is at work. */
  #run: Run<Tools> | undefined;
  #isShowing = false;
  /** The messages that all watchers have. None, at first: who watched before the object rested is told everything once more. */
  #shown: readonly Message[] = [];

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#agent = agentOf(env, () => this.#show());
  }

  /** A browser begins to watch. */
  override async fetch(): Promise<Response> {
    if (this.ctx.getWebSockets().length >= MAX_WATCHERS) return new Response("too many watch this", { status: 503 });
    const { 0: client, 1: server } = new WebSocketPair();
    const session = await this.#session();
    this.ctx.acceptWebSocket(server);
    server.send(update(session, 0));
    return new Response(null, { status: 101, webSocket: client });
  }

  override async webSocketMessage(socket: WebSocket, data: string | ArrayBuffer): Promise<void> {
    try {
      await this.#handle(requestOf(data));
    } catch (error) {
      socket.send(JSON.stringify({ failure: error instanceof Error ? error.message : String(error) }));
    }
  }

  override webSocketClose(socket: WebSocket): void {
    socket.close(1000);
  }

  /** A run was stopped and nobody came since, or the time of a question is over. */
  override async alarm(): Promise<void> {
    const session = await this.#session();
    if (this.#run === undefined) await this.#follow(() => session.resume());
    else await this.#watch();
  }

  async #handle(request: Request): Promise<void> {
    const session = await this.#session();
    switch (request.type) {
      case "send":
        await this.#follow(() => session.send(request.text));
        break;
      case "decide":
        // Somebody else who watches may have been faster.
        if (!session.getState().pending.some(({ callId }) => callId === request.callId)) break;
        session.approve(request.callId, request.allow);
        this.#show();
        if (this.#run === undefined) await this.#follow(() => session.resume());
        break;
      case "stop":
        session.abort();
    }
  }

  /** The conversation; what was at work in it when the object was evicted goes on. */
  #session(): Promise<Session<Tools>> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<Session<Tools>> {
    const session = await this.#agent.open("chat", durableObjectStore(this.ctx.storage));
    const { status, pending } = session.getState();
    // What only waits for a person may rest.
    if (status === "interrupted" && pending.length === 0) await this.#follow(() => session.resume(), session);
    return session;
  }

  /** Sees a run through. It is read here and not by a browser, so that it goes on when all of them leave. */
  async #follow(begin: () => Run<Tools> | undefined, opened?: Session<Tools>): Promise<void> {
    // Before anything happens, so that there is no moment in which nothing would take it up.
    await this.#watch();
    const run = begin();
    this.#run = run;
    void (async () => {
      // What it failed with is in the state.
      await run?.result.catch(() => {});
      this.#run = undefined;
      const { pending } = (opened ?? (await this.#session())).getState();
      if (pending.length > 0) await this.ctx.storage.setAlarm(Date.now() + APPROVAL_LIMIT);
      else await this.ctx.storage.deleteAlarm();
      this.#show();
    })();
  }

  /** Sees to it that the object is started again should it be evicted. */
  async #watch(): Promise<void> {
    await this.ctx.storage.setAlarm(Date.now() + Number(this.env.RESUME_AFTER_SECONDS) * 1_000);
  }

  /** Tells all watchers what has changed, once for all that happens in one turn. */
  #show(): void {
    if (this.#isShowing) return;
    this.#isShowing = true;
    queueMicrotask(async () => {
      this.#isShowing = false;
      const session = await this.#session();
      const { messages } = session.getState();
      const changed = messages.findIndex((message, index) => message !== this.#shown[index]);
      const text = update(session, changed === -1 ? messages.length : changed);
      this.#shown = messages;
      for (const socket of this.ctx.getWebSockets()) if (socket.readyState === WebSocket.OPEN) socket.send(text);
    });
  }
}

/** The state with the messages from a place on; those before it have not changed. */
function update(session: Session<Tools>, from: number): string {
  const { messages, ...state } = session.getState();
  return JSON.stringify({ from, messages: messages.slice(from), state });
}

function requestOf(data: string | ArrayBuffer): Request {
  if (typeof data !== "string" || data.length > MAX_MESSAGE)
    throw new Error("a message is text of at most 100 000 characters");
  const request = JSON.parse(data) as Partial<Record<string, unknown>>;
  const { type, text, callId, allow } = request;
  if (type === "send" && typeof text === "string") return { type, text };
  if (type === "decide" && typeof callId === "string" && typeof allow === "boolean") return { type, callId, allow };
  if (type === "stop") return { type };
  throw new Error("this is no request of the chat");
}
