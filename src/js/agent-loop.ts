/// <reference lib="esnext.disposable" preserve="true" />
import { CrabletError, invalidInput } from "./error.js";
import type { Input } from "./message.js";
import type { Run, RunResult } from "./run.js";
import type { Session, SessionSnapshot } from "./session.js";
import type { ToolSet } from "./tool.js";

/** The most messages that wait for their turn, and as many answers for somebody who takes them. */
const MAX_WAITING = 64;

type Outcome = { readonly result: RunResult } | { readonly error: unknown };

/**
 * A conversation in the long-lived form: messages go in, answers come out, one at a time and in order. What happens in between is
 * shown by `session.subscribe` and the agent's `onEvent`.
 */
export class AgentLoop<T extends ToolSet = ToolSet> implements AsyncIterable<RunResult>, AsyncDisposable {
  /** The conversation, to follow, to approve calls and to save. */
  readonly session: Session<T>;
  readonly #messages: Input[] = [];
  readonly #answers: Outcome[] = [];
  readonly #takers: { resolve: (result: RunResult | undefined) => void; reject: (reason: unknown) => void }[] = [];
  #run: Run<T> | undefined;
  #working: Promise<void> | undefined;
  /** Whether a run is to be gone on with before the next message. */
  #resumes = true;
  #isSuspended = false;
  #isStopped = false;

  /** @internal */
  constructor(session: Session<T>) {
    this.session = session;
    // A saved run is gone on with at once: its answer is the first.
    if (session.getState().status !== "idle") this.#work();
  }

  /**
   * Sends a message. Does not wait: it is worked on when those before it are answered, and `next()` gives its answer.
   *
   * @throws CrabletError `invalid-input` when the loop was stopped; `limit` when 64 messages or 64 answers wait already.
   */
  send(input: Input): void {
    this.#refuseStopped();
    if (this.#messages.length >= MAX_WAITING || this.#answers.length >= MAX_WAITING)
      throw new CrabletError({ kind: "limit", message: `${MAX_WAITING} messages or answers wait already: take some` });
    this.#messages.push(input);
    this.#work();
  }

  /**
   * Adds to what is being worked on: the message is answered before the run ends, and that answer takes the place of the one
   * before. Without a run at work, as `send`.
   *
   * @throws CrabletError as `send`.
   */
  followUp(input: Input): void {
    this.#refuseStopped();
    try {
      if (this.#run !== undefined) {
        this.#run.followUp(input);
        return;
      }
    } catch (thrown) {
      // A run that has not started yet, or is ending, takes none.
      if (!CrabletError.is(thrown) || thrown.kind !== "invalid-input") throw thrown;
    }
    this.send(input);
  }

  /**
   * Takes the next answer, waiting for it; `undefined` once the loop was stopped and no answer is left. A run that waits for an
   * approval gives a result with the stop reason `suspended`; `session.approve` and then `continue()` go on with it.
   *
   * @throws CrabletError what ended the run of that message. The loop goes on with the message after it.
   */
  next(): Promise<RunResult | undefined> {
    const outcome = this.#answers.shift();
    if (outcome !== undefined)
      return "result" in outcome ? Promise.resolve(outcome.result) : Promise.reject(outcome.error);
    if (this.#isStopped && this.#working === undefined) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => this.#takers.push({ resolve, reject }));
  }

  /** Goes on with a run that waited, after it was decided about: its answer comes next. */
  continue(): void {
    this.#refuseStopped();
    if (!this.#isSuspended) return;
    this.#isSuspended = false;
    this.#resumes = true;
    this.#work();
  }

  /**
   * Stops: what is worked on is finished, or aborted with `{ abort: true }`; messages that wait are dropped. Resolves when
   * nothing is at work any more. The answers that are there can still be taken.
   */
  async stop({ abort = false }: { readonly abort?: boolean } = {}): Promise<void> {
    this.#isStopped = true;
    this.#messages.length = 0;
    if (abort) this.#run?.abort(new CrabletError({ kind: "aborted", message: "the loop was stopped" }));
    await this.#working;
    for (const { resolve } of this.#takers.splice(0)) resolve(undefined);
  }

  /** The conversation, to be saved. Messages that wait for their turn are not part of it. */
  toJSON(): SessionSnapshot {
    return this.session.toJSON();
  }

  /** As `stop({ abort: true })`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop({ abort: true });
  }

  /** The answers, until the loop is stopped. */
  async *[Symbol.asyncIterator](): AsyncGenerator<RunResult, undefined> {
    for (;;) {
      const result = await this.next();
      if (result === undefined) return;
      yield result;
    }
  }

  #work(): void {
    if (this.#working !== undefined || this.#isSuspended || this.#isStopped) return;
    this.#working = this.#answerAll().finally(() => {
      this.#working = undefined;
      // Something that came in the very last moment.
      if (this.#messages.length > 0 || this.#resumes) this.#work();
    });
  }

  async #answerAll(): Promise<void> {
    while (!this.#isSuspended) {
      try {
        this.#run = this.#begin();
        if (this.#run === undefined) return;
        const result = await this.#run.result;
        this.#isSuspended = result.stopReason === "suspended";
        this.#give({ result });
      } catch (error) {
        this.#give({ error });
      } finally {
        this.#run = undefined;
      }
    }
  }

  /** The run that is to be gone on with, else that of the next message. */
  #begin(): Run<T> | undefined {
    const resumed = this.#resumes ? this.session.resume() : undefined;
    this.#resumes = false;
    if (resumed !== undefined) return resumed;
    const input = this.#messages.shift();
    return input === undefined ? undefined : this.session.send(input);
  }

  #give(outcome: Outcome): void {
    const taker = this.#takers.shift();
    if (taker === undefined) this.#answers.push(outcome);
    else if ("result" in outcome) taker.resolve(outcome.result);
    else taker.reject(outcome.error);
  }

  #refuseStopped(): void {
    if (this.#isStopped) throw invalidInput("this loop was stopped: start another with agent.loop(saved)");
  }
}
