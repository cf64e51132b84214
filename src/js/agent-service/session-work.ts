import type { Agent } from "../agent.js";
import { CrabletError } from "../error.js";
import type { Run } from "../run.js";
import type { Session } from "../session.js";
import { conflict, type SessionStore } from "../store.js";
import { AskedCalls } from "./asked-calls.js";
import { Deliveries, type WorkEnd } from "./deliveries.js";
import { EventLog, readTail } from "./event-log.js";
import type { JetStreamMessage, Streams } from "./nats.js";
import type { Names, ServiceEvent } from "./protocol.js";
import { type Plan, planOf } from "./restored.js";
import { AGENT_ATTEMPTS, agentWait } from "./retry.js";
import { infoOf, type ReadInput, SessionInputs } from "./session-inputs.js";
import type { LogContents } from "./session-log.js";
import { isConflict, type SessionLogs } from "./store.js";

/** @internal What a worker has for its sessions. */
export interface WorkParts {
  readonly streams: Streams;
  readonly names: Names;
  readonly logs: SessionLogs;
  readonly worker: string;
  agentOf(session: string): Agent<any> | Promise<Agent<any>>;
}

/**
 * The work of one worker on one session that it has claimed, until nothing is left to do.
 *
 * @internal
 */
export class SessionWork {
  readonly #parts: WorkParts;
  readonly #id: string;
  readonly #deliveries = new Deliveries();
  #inputs!: SessionInputs;
  #events!: EventLog;
  #session!: Session<any>;
  #plan!: Plan;
  #run: Run<any> | undefined;
  /** The run has begun in the module, so that it takes messages. */
  #isBegun = false;
  #isRunOver = false;
  readonly #asked = new AskedCalls();
  #reading: Promise<void> = Promise.resolve();
  #end: Exclude<WorkEnd, "done"> | undefined;
  #isStopping = false;
  /** Ends a pause. */
  #wake: () => void = () => {};
  #isOver = false;
  #agent!: Agent<any>;
  /** How often the session was taken up: only the latest is written. */
  #opening = 0;
  #writing: Promise<void> = Promise.resolve();

  constructor(parts: WorkParts, id: string) {
    this.#parts = parts;
    this.#id = id;
  }

  /** Holds a message of the consumer until the work ends. */
  hold(message: JetStreamMessage): void {
    this.#deliveries.hold(message);
    this.notify();
  }

  /** Says to the server that the messages are being worked on. */
  working(): void {
    this.#deliveries.working();
  }

  /** Inputs came. */
  notify(): void {
    if (this.#run === undefined) return;
    this.#read().catch((thrown: unknown) => this.#fail(thrown));
  }

  /** Takes no further prompt. */
  drain(): void {
    this.#isStopping = true;
    this.#wake();
  }

  /** Stops at once: what is not saved is left to whoever goes on. */
  stop(end: "lost" | "handed-over"): void {
    this.#end ??= end;
    this.#isStopping = true;
    this.#wake();
    this.#events?.stop(conflict(this.#id, 0));
    this.#run?.abort(new CrabletError({ kind: "aborted", message: "another worker goes on with this session" }));
  }

  /** Works until nothing is left to do. */
  async work(): Promise<WorkEnd> {
    const { streams, names } = this.#parts;
    const { subject } = names.input(this.#id);
    const hint = streams.connection.subscribe(subject, { callback: () => this.notify() });
    try {
      if (await this.#open()) await this.#goOn();
      await this.#events.flush();
    } catch (thrown) {
      this.#fail(thrown);
    } finally {
      hint.unsubscribe();
      this.#isOver = true;
      this.#parts.logs.forget(this.#id);
    }
    return this.#end ?? "done";
  }

  /** Answers the messages of the consumer: what is settled is not delivered again. */
  settleDeliveries(end: WorkEnd, now: number): void {
    const dueAt = end === "done" && this.#isWaitingForPerson() ? this.#session.dueAt() : undefined;
    this.#deliveries.settle(end, this.#inputs, dueAt === undefined ? undefined : Math.max(dueAt - now, 0) + 1);
  }

  /** While the session is being opened, the attempt that failed is made again. */
  #onEventsFailed(error: unknown): void {
    if (this.#session !== undefined) this.#fail(error);
  }

  #isWaitingForPerson(): boolean {
    const status = this.#session?.getState().status;
    return status === "awaiting-approval" || status === "awaiting-result" || status === "interrupted";
  }

  /**
   * Reads the session and its events, keeps slower workers out, says what holds, and takes the session up. `false` when that
   * cannot be done, and whoever waits was told.
   */
  async #open(): Promise<boolean> {
    const { streams, names, logs, worker } = this.#parts;
    const place = names.events(this.#id);
    let contents: LogContents;
    for (let attempt = 1; ; attempt += 1) {
      contents = await logs.read(this.#id);
      const tail = await readTail(streams, place);
      this.#plan = planOf(contents.entries, tail, Date.now());
      try {
        if (this.#plan.fences) await logs.fence(this.#id, contents);
        this.#events = new EventLog(streams, {
          place,
          session: this.#id,
          worker,
          tail,
          onFailure: (error) => this.#onEventsFailed(error),
        });
        for (const event of this.#plan.events) await this.#events.push(event);
        await this.#events.flush();
        break;
      } catch (thrown) {
        // A slower worker was at it just now. It is kept out once this one was first.
        if (!isConflict(thrown) || attempt === MAX_OPENINGS) throw thrown;
      }
    }
    this.#inputs = new SessionInputs(streams, names.input(this.#id), contents.taken);
    return this.#takeUp(contents);
  }

  /** Makes the agent and takes the session up, and tries it a few times. */
  async #takeUp(contents: LogContents): Promise<boolean> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        this.#agent = await this.#parts.agentOf(this.#id);
        await this.#take(contents);
        return true;
      } catch (thrown) {
        console.error(`crablet: the agent of the session ${JSON.stringify(this.#id)} could not be made`, thrown);
        if (attempt === AGENT_ATTEMPTS) {
          await this.#giveUp(thrown);
          return false;
        }
      }
      if (!this.#isStopping) await this.#pause(agentWait(attempt));
      if (this.#isStopping) {
        this.#end ??= "handed-over";
        return false;
      }
    }
  }

  /** Waits, or until the service is stopped. */
  #pause(millis: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, millis);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Refuses what came, since the agent of the session cannot be made. */
  async #giveUp(thrown: unknown): Promise<void> {
    const { kind, message, retryable } = infoOf(thrown);
    const tried = `the agent of this session could not be made, which was tried ${AGENT_ATTEMPTS} times: ${message}`;
    const error = new CrabletError({ kind, message: tried, retryable });
    for (const { inputId, error } of await this.#inputs.read())
      await this.#say({ type: "input-refused", inputId, error });
    for (const waiting of this.#inputs.waiting()) await this.#refuse(waiting, error);
    if (this.#plan.isOpen) await this.#say({ type: "session-failed", error: infoOf(error) });
    await this.#events.flush();
  }

  async #take(contents: LogContents): Promise<void> {
    this.#session = await this.#agent.open(this.#id, this.#storeOf(contents));
  }

  /** Takes the session up anew, so that a run that waits asks again for what it waits for. */
  async #reopen(): Promise<void> {
    this.#opening += 1;
    await this.#writing;
    this.#inputs.giveAgain();
    await this.#take(await this.#parts.logs.read(this.#id));
  }

  /** The session's log as the agent's store: with each checkpoint goes which inputs are in it. */
  #storeOf(contents: LogContents): SessionStore {
    const { logs } = this.#parts;
    const opening = this.#opening;
    const write = async (
      kind: "append" | "replace",
      id: string,
      expectedVersion: number,
      entries: readonly string[],
    ): Promise<number> => {
      // Also once the claim is given up: what a conversation that rests still has to say, the next worker knows.
      if (this.#end !== undefined || this.#isOver || this.#opening !== opening) throw conflict(id, expectedVersion);
      const { taken, settled } = this.#inputs.keptIn(entries);
      const writing = logs.write(id, expectedVersion, kind, entries, taken);
      this.#writing = writing.then(
        () => {},
        () => {},
      );
      const version = await writing;
      for (const input of settled) input.state = "settled";
      return version;
    };
    return {
      read: async () => (contents.version === 0 ? undefined : contents),
      append: (id, expectedVersion, entries) => write("append", id, expectedVersion, entries),
      replace: (id, expectedVersion, base) => write("replace", id, expectedVersion, base),
      delete: (id) => logs.delete(id),
      list: () => logs.list(),
    };
  }

  async #goOn(): Promise<void> {
    if (this.#plan.resumes) await this.#follow(this.#session.resume());
    for (;;) {
      await this.#read();
      if (this.#end !== undefined || this.#isStopping) return;
      if (this.#isWaitingForPerson()) {
        const decisions = this.#inputs.waiting().filter(({ input }) => RESUMING.has(input.type));
        if (decisions.length === 0) return;
        if (this.#session.getState().status !== "interrupted") await this.#reopen();
        await this.#follow(this.#session.resume());
        await this.#refuseLeft(decisions);
        continue;
      }
      const prompt = this.#inputs.waiting().find(({ input }) => PROMPTS.has(input.type));
      if (prompt === undefined) return;
      await this.#start(prompt);
    }
  }

  /** Starts a run with a prompt. */
  async #start(prompt: ReadInput): Promise<void> {
    const { input } = prompt;
    if (input.type !== "prompt" && input.type !== "follow-up") return;
    prompt.state = "given";
    await this.#say({ type: "input-accepted", inputId: input.id, inputType: input.type });
    await this.#follow(this.#session.send(input.content), prompt);
  }

  /** Follows a run to its end, or until it waits for a person. */
  async #follow(run: Run<any> | undefined, prompt?: ReadInput): Promise<void> {
    if (run === undefined) return;
    this.#run = run;
    this.#isRunOver = false;
    const over = (): void => {
      this.#isRunOver = true;
    };
    run.result.then(over, over);
    let hasEnded = false;
    try {
      for await (const event of run.toReadableStream({ untilSuspended: true })) {
        // A run that waits for a person is let go of in this moment.
        this.#isBegun = event.type !== "run-suspended";
        hasEnded ||= event.type === "run-end";
        this.#asked.note(event);
        await this.#events.push(event);
        await this.#give();
      }
    } catch (thrown) {
      if (isConflict(thrown) || isStorage(thrown)) throw thrown;
      // An error that ended a run stands in its last event. Else the run did not begin.
      if (!hasEnded && prompt !== undefined) await this.#refuse(prompt, thrown);
      else if (!hasEnded) throw thrown;
    } finally {
      this.#run = undefined;
      this.#isBegun = false;
      this.#asked.clear();
    }
    if (this.#end === undefined && hasEnded) this.#inputs.settleGiven();
    await this.#events.flush();
  }

  /** Reads what came and gives it to the run, one after the other. */
  #read(): Promise<void> {
    const reading = this.#reading.then(async () => {
      for (const { inputId, error } of await this.#inputs.read())
        await this.#say({ type: "input-refused", inputId, error });
      await this.#give();
    });
    this.#reading = reading.catch(() => {});
    return reading;
  }

  /** Gives the run what waits for it. */
  async #give(): Promise<void> {
    let isPromptBefore = false;
    for (const waiting of this.#inputs.waiting()) {
      if (waiting.state !== "waiting" || this.#end !== undefined) continue;
      isPromptBefore ||= PROMPTS.has(waiting.input.type);
      if (this.#run === undefined) {
        // What comes behind a prompt is for its run.
        if (!this.#isWaitingForPerson() && !isPromptBefore)
          await this.#refuse(waiting, new CrabletError({ kind: "invalid-input", message: NO_RUN }));
        continue;
      }
      if (!this.#isBegun || this.#isRunOver) return;
      try {
        const messageId = this.#giveTo(this.#run, waiting);
        if (messageId === undefined) continue;
        const { id: inputId, type: inputType } = waiting.input;
        await this.#say({ type: "input-accepted", inputId, inputType, ...(messageId !== "" && { messageId }) });
      } catch (thrown) {
        if (isConflict(thrown) || isStorage(thrown)) throw thrown;
        await this.#refuse(waiting, thrown);
      }
    }
  }

  /** The id of the message that waits, "" where there is none; `undefined` when it is not the input's turn. */
  #giveTo(run: Run<any>, waiting: ReadInput): string | undefined {
    const { input } = waiting;
    switch (input.type) {
      case "prompt":
        return undefined;
      case "steer":
        void run.steer(input.content);
        waiting.messageId = this.#session.queued().steers.at(-1)?.id;
        break;
      case "follow-up":
        waiting.messageId = run.followUp(input.content);
        break;
      case "abort":
        run.abort(new CrabletError({ kind: "aborted", message: input.reason ?? "the run was aborted by a client" }));
        break;
      case "approve":
      case "tool-result":
        if (!this.#asked.answer(run, input)) return undefined;
        break;
    }
    waiting.state = "given";
    return waiting.messageId ?? "";
  }

  /** Refuses decisions about calls that do not wait: those that do were asked for again when the run went on. */
  async #refuseLeft(decisions: readonly ReadInput[]): Promise<void> {
    for (const decision of decisions) {
      if (decision.state !== "waiting" || this.#end !== undefined) continue;
      await this.#refuse(decision, new CrabletError({ kind: "invalid-input", message: "no such call waits" }));
    }
  }

  async #refuse(refused: ReadInput, thrown: unknown): Promise<void> {
    refused.state = "settled";
    await this.#say({ type: "input-refused", inputId: refused.input.id, error: infoOf(thrown) });
  }

  #say(event: ServiceEvent): Promise<void> {
    return this.#events.push(event);
  }

  #fail(thrown: unknown): void {
    if (isConflict(thrown)) this.stop("lost");
    else {
      this.#end ??= "failed";
      this.#run?.abort(thrown);
      if (!isStorage(thrown)) console.error(`crablet: the session ${JSON.stringify(this.#id)} failed`, thrown);
    }
  }
}

const isStorage = (thrown: unknown): boolean => CrabletError.is(thrown) && thrown.kind === "storage";

/** What begins a run when none is at work. */
const PROMPTS: ReadonlySet<string> = new Set(["prompt", "follow-up"]);
/** What a run that waits goes on for. */
const RESUMING: ReadonlySet<string> = new Set(["approve", "tool-result", "abort", "steer"]);
const NO_RUN = "no run is at work: send a prompt";
/** How often a session is read again when a slower worker was first. */
const MAX_OPENINGS = 5;
