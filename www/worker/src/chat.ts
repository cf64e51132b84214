// A conversation in a Durable Object. Any number of browsers watch it; one of them may take it and work on it by itself.
import { DurableObject } from "cloudflare:workers";
import { type Agent, CrabletError, type Run, type Session } from "crablet";
import { durableObjectStore } from "crablet/stores";
import { agentOf, type Tools } from "./agent.js";
import { type Key, Records } from "./custody.js";
import type { Directory, Entry } from "./directory.js";
import { type Env, ownPlace } from "./env.js";
import { type Lent, requestOf, type StoreAnswer, type StoreCall } from "./requests.js";
import { Watchers } from "./watchers.js";

/** The id of the conversation in the store of its object. */
const ID = "chat";

/** The most messages of one conversation. All of them are in the object's memory while it works, 128 MB. */
const MAX_MESSAGES = 2_000;

/** How much of a first question the list shows, in characters. */
const MAX_TITLE = 80;

/** How often the time until a run is taken up once more may double. */
const MAX_DOUBLINGS = 7;

/**
 * The object may be evicted at any time. While it rests, because nothing is at work or a person is asked, it costs nothing and
 * its WebSockets stay open; the next message starts it again. All that is to happen later, happens by its one alarm: see `#arm`.
 */
export class Chat extends DurableObject<Env> {
  readonly #store = durableObjectStore(this.ctx.storage);
  readonly #records = new Records(this.ctx.storage);
  readonly #watchers = new Watchers(this.ctx);
  readonly #agent: Agent<Tools>;
  #opening: Promise<Session<Tools>> | undefined;
  /** The run that is at work. */
  #run: Run<Tools> | undefined;
  #isShowing = false;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#agent = agentOf({ ...ownPlace(env), onEvent: () => this.#show() });
  }

  /** A browser begins to watch, or continues. */
  override async fetch(request: Request): Promise<Response> {
    const { searchParams } = new URL(request.url);
    this.#records.key = { user: searchParams.get("user") ?? "", name: searchParams.get("name") ?? "" };
    await this.#goOn();
    return this.#watchers.accept(Number(searchParams.get("have")), await this.#view());
  }

  override async webSocketMessage(socket: WebSocket, data: string | ArrayBuffer): Promise<void> {
    try {
      const request = requestOf(data);
      this.#records.usedAt = Date.now();
      if (request.type === "recall") await this.#takeBack();
      else if (this.#records.custody.kind !== "here") throw new Error("another place works on this conversation");
      else if (request.type === "send") await this.#send(request.text);
      else if (request.type === "decide") await this.#decide(request.callId, request.allow);
      else this.#run?.abort();
    } catch (error) {
      socket.send(JSON.stringify({ failure: error instanceof Error ? error.message : String(error) }));
    }
  }

  override webSocketClose(socket: WebSocket): void {
    socket.close(1000);
  }

  override async alarm(): Promise<void> {
    try {
      await this.#attend();
    } catch (error) {
      // The platform would try a few times more and then never again.
      console.error("the alarm failed", error);
      await this.#alarmAt(Date.now() + seconds(this.env.RESUME_AFTER_SECONDS));
    }
  }

  /** Where the conversation has gone, the id of an object; `undefined` when it is here. */
  movedTo(): string | undefined {
    const { custody } = this.#records;
    return custody.kind === "gone" ? custody.to : undefined;
  }

  /** Remembers that the conversation has gone on from where it went. */
  pointTo(to: string): void {
    if (this.movedTo() !== undefined) this.#records.custody = { kind: "gone", to };
  }

  /** Hands the conversation over to a new object, in a jurisdiction when one is named. Returns the id of that object. */
  async move(jurisdiction?: DurableObjectJurisdiction): Promise<string> {
    this.#mustBeHere();
    const to = this.env.CHATS.newUniqueId(jurisdiction === undefined ? {} : { jurisdiction }).toString();
    await this.#fence();
    // From here on it leaves, whatever happens: an object that is stopped now is told by its alarm.
    this.#records.custody = { kind: "leaving", to, ticket: crypto.randomUUID() };
    await this.#arm();
    await this.#deliver();
    return to;
  }

  /** Takes a conversation in. It may be told so again, by an object that was stopped before it knew. */
  async arrive(key: Key, ticket: string, entries: readonly string[]): Promise<void> {
    const isTold = this.#records.arrivedBy === ticket;
    if (isTold && this.#records.custody.kind !== "here") return;
    const kept = await this.#store.read(ID);
    if (kept !== undefined && !isTold) throw new Error("there is another conversation here");
    if (kept === undefined) {
      this.#records.arrivedBy = ticket;
      this.#records.key = key;
      await this.#store.replace(ID, 0, entries);
      this.#opening = undefined;
    }
    await this.#goOn();
    await this.#arm();
  }

  /** Lends the conversation to a browser. What is at work here ends; what that was, its saved form says. */
  async lend(): Promise<Lent> {
    this.#mustBeHere();
    await this.#fence();
    const ticket = crypto.randomUUID();
    this.#records.custody = { kind: "lent", ticket, until: Date.now() + seconds(this.env.LEASE_SECONDS) };
    await this.#tell("in a browser");
    await this.#arm();
    this.#show();
    return { ticket, leaseMs: seconds(this.env.LEASE_SECONDS) };
  }

  /** Keeps what the browser writes that has the conversation. Each word of it renews the lease. */
  async store(ticket: string, call: StoreCall): Promise<StoreAnswer> {
    if (!this.#isLentTo(ticket)) return { conflict: true };
    this.#records.custody = { kind: "lent", ticket, until: Date.now() + seconds(this.env.LEASE_SECONDS) };
    await this.#arm();
    if (call.op === "renew") return {};
    if (call.op === "read") return { stored: await this.#store.read(ID) };
    try {
      const { op, version: expected, entries } = call;
      const version = await this.#store[op](ID, expected, entries);
      // Who watches here sees what was saved there.
      this.#opening = undefined;
      this.#show();
      return { version };
    } catch (error) {
      if (isConflict(error)) return { conflict: true };
      throw error;
    }
  }

  /** The browser gives the conversation back. */
  async giveBack(ticket: string): Promise<void> {
    if (this.#isLentTo(ticket)) await this.#takeBack();
  }

  /** Forgets everything. */
  async forget(): Promise<void> {
    const { key } = this.#records;
    if (key !== undefined) await this.#directory(key).forget(key.name);
    const run = this.#run;
    this.#run = undefined;
    this.#opening = undefined;
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
    run?.abort();
    this.#watchers.sendAway("this conversation was forgotten");
  }

  async #send(text: string): Promise<void> {
    const session = await this.#session();
    const { messages } = session.getState();
    if (messages.length >= MAX_MESSAGES)
      throw new Error(`this conversation has its ${MAX_MESSAGES} messages; begin another`);
    // Whatever begins stands in the list: so it can be found again.
    const isNew = messages.length === 0;
    const isListed = isNew ? await this.#tell("running", text) : await this.#tell("running").catch(() => true);
    if (!isListed) throw new Error("you have all the conversations that you can have; forget one");
    await this.#follow((opened) => opened.send(text));
  }

  async #decide(callId: string, allow: boolean): Promise<void> {
    const session = await this.#session();
    // Somebody else who watches may have been faster.
    if (!session.getState().pending.some((call) => call.callId === callId)) return;
    session.approve(callId, allow);
    this.#show();
    if (this.#run === undefined) await this.#follow((opened) => opened.resume());
  }

  /** What the alarm is for. */
  async #attend(): Promise<void> {
    const { custody, retryAt, usedAt } = this.#records;
    if (custody.kind === "gone") return;
    if (custody.kind === "leaving") return this.#deliver();
    if (custody.kind === "lent") return custody.until <= Date.now() ? this.#takeBack() : this.#arm();
    if (this.#run !== undefined || retryAt > Date.now()) return this.#arm();
    const session = await this.#session();
    const due = session.dueAt();
    // The time of a question is over, say.
    if (due !== undefined && due <= Date.now()) return this.#follow((opened) => opened.resume());
    const isOld = usedAt + seconds(this.env.FORGET_AFTER_SECONDS) <= Date.now();
    if (session.getState().status === "idle" && isOld && this.#watchers.count === 0) return this.forget();
    await this.#goOn();
    if (this.#run === undefined) await this.#rest();
  }

  /** Goes on with what was at work when the object was stopped. What only waits for a person may rest. */
  async #goOn(): Promise<void> {
    if (this.#run !== undefined || this.#records.custody.kind !== "here") return;
    const { status, pending } = (await this.#session()).getState();
    if (status !== "interrupted" || pending.length > 0) return;
    this.#countTry();
    await this.#follow((session) => session.resume());
  }

  /** Sees a run through. It is read here and not by a browser, so that it goes on when all of them leave. */
  async #follow(begin: (session: Session<Tools>) => Run<Tools> | undefined): Promise<void> {
    const session = await this.#session();
    // Before anything happens, so that there is no moment in which nothing would take it up.
    await this.#alarmAt(Date.now() + seconds(this.env.RESUME_AFTER_SECONDS));
    const run = begin(session);
    if (run === undefined) return;
    this.#run = run;
    void (async () => {
      // What it failed with is in the state.
      await run.result.catch(() => {});
      if (this.#run !== run) return;
      this.#run = undefined;
      if (session.getState().status !== "interrupted") this.#records.tries = 0;
      // Should that fail, the alarm that stands does it again.
      await this.#rest().catch((error: unknown) => console.error("what is over could not be told", error));
    })();
  }

  /** Nothing is at work any more. */
  async #rest(): Promise<void> {
    const { status, pending } = (await this.#session()).getState();
    const told = pending.length > 0 ? "waiting" : status === "interrupted" || status === "error" ? "failed" : "idle";
    // Before the alarm is set for later: a list that cannot be reached is told again by the alarm that stands.
    await this.#tell(told);
    await this.#arm();
    this.#show();
  }

  /** Sets the alarm to when this object is next to do something by itself. */
  async #arm(): Promise<void> {
    const { custody, retryAt, usedAt } = this.#records;
    if (custody.kind === "gone") return this.ctx.storage.deleteAlarm();
    if (custody.kind === "lent") return this.#alarmAt(custody.until);
    const soon = Date.now() + seconds(this.env.RESUME_AFTER_SECONDS);
    // A run keeps the object from being evicted, as long as something comes in now and then.
    if (custody.kind === "leaving" || this.#run !== undefined) return this.#alarmAt(soon);
    const session = await this.#session();
    const { status, pending } = session.getState();
    if (status === "interrupted" && pending.length === 0) return this.#alarmAt(Math.max(soon, retryAt));
    await this.#alarmAt(session.dueAt() ?? Math.max(soon, usedAt + seconds(this.env.FORGET_AFTER_SECONDS)));
  }

  #alarmAt(time: number): Promise<void> {
    return this.ctx.storage.setAlarm(time);
  }

  /** What does not come to an end is taken up less and less often by itself. */
  #countTry(): void {
    const { tries } = this.#records;
    const wait = seconds(this.env.RESUME_AFTER_SECONDS) * 2 ** Math.min(tries, MAX_DOUBLINGS);
    this.#records.tries = tries + 1;
    this.#records.retryAt = Date.now() + wait;
  }

  /**
   * Takes the conversation out of the hands of whoever works on it, this object included. Each write names the version that it
   * builds on, and this is one more: the next of any other is refused before anything is done that was not saved.
   */
  async #fence(): Promise<void> {
    for (;;) {
      const kept = await this.#store.read(ID);
      if (kept === undefined) throw new Error("this conversation has not begun");
      try {
        await this.#store.append(ID, kept.version, []);
        break;
      } catch (error) {
        // Somebody wrote in between.
        if (!isConflict(error)) throw error;
      }
    }
    const run = this.#run;
    this.#run = undefined;
    this.#opening = undefined;
    run?.abort();
  }

  async #takeBack(): Promise<void> {
    if (this.#records.custody.kind !== "lent") return;
    this.#records.custody = { kind: "here" };
    await this.#fence();
    await this.#goOn();
    if (this.#run === undefined) await this.#rest();
    this.#show();
  }

  /** Brings the conversation to the object that it goes to, which may have it already. */
  async #deliver(): Promise<void> {
    const { custody, key } = this.#records;
    if (custody.kind !== "leaving" || key === undefined) return;
    const entries = (await this.#store.read(ID))?.entries ?? [];
    await this.env.CHATS.get(this.env.CHATS.idFromString(custody.to)).arrive(key, custody.ticket, entries);
    this.#records.custody = { kind: "gone", to: custody.to };
    this.#opening = undefined;
    await this.#arm();
    await this.#store.delete(ID);
    this.#watchers.sendAway("this conversation has moved");
  }

  #mustBeHere(): void {
    if (this.#records.custody.kind !== "here") throw new Error("another place works on this conversation");
  }

  #isLentTo(ticket: string): boolean {
    const { custody } = this.#records;
    return custody.kind === "lent" && custody.ticket === ticket;
  }

  #session(): Promise<Session<Tools>> {
    this.#opening ??= this.#agent.open(ID, this.#store).catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  #directory({ user }: Key): DurableObjectStub<Directory> {
    return this.env.DIRECTORIES.get(this.env.DIRECTORIES.idFromName(user));
  }

  /** Tells the list. `false`: it is full. */
  async #tell(status: Entry["status"], question?: string): Promise<boolean> {
    const { key } = this.#records;
    if (key === undefined) return true;
    const first = question ?? (await this.#session()).getState().messages[0]?.content[0];
    const title = typeof first === "string" ? first : first?.type === "text" ? first.text : "";
    return this.#directory(key).note({ name: key.name, title: title.slice(0, MAX_TITLE), status });
  }

  async #view() {
    const session = await this.#session();
    return { ...session.getState(), isLent: this.#records.custody.kind === "lent" };
  }

  /** Tells all watchers what has changed, once for all that happens in one turn. */
  #show(): void {
    if (this.#isShowing) return;
    this.#isShowing = true;
    queueMicrotask(async () => {
      this.#isShowing = false;
      this.#watchers.show(await this.#view());
    });
  }
}

const seconds = (text: string): number => Number(text) * 1_000;

const isConflict = (error: unknown): boolean => CrabletError.is(error) && error.kind === "conflict";
