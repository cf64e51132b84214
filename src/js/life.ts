import { CrabletError, messageOf } from "./error.js";

/**
 * Whether an instance of the module can still be used. A trap leaves its memory in an unknown state, so it ends the instance:
 * whoever waits for something from it is told, and what comes later runs on a fresh one.
 *
 * @internal
 */
export class Life {
  readonly #listeners = new Set<(error: CrabletError) => void>();
  readonly #timers = new Set<Timer>();
  #error: CrabletError | undefined;

  /** The timers of the instance. They end with it, or Node would wait for them. */
  readonly timers = {
    setTimeout: (call: () => void, delay: number): Timer => {
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        call();
      }, delay);
      this.#timers.add(timer);
      return timer;
    },
    clearTimeout: (timer: Timer): void => {
      this.#timers.delete(timer);
      clearTimeout(timer);
    },
  };

  /** Why the instance is dead; `undefined` while it lives. */
  get error(): CrabletError | undefined {
    return this.#error;
  }

  /** Calls a function when the instance dies, at once if it is dead. Returns what takes that back. */
  onEnd(listener: (error: CrabletError) => void): () => void {
    if (this.#error !== undefined) listener(this.#error);
    else this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The exports of the instance, watched: a trap in one ends this life, and nothing gets in afterwards. */
  guard(exports: WebAssembly.Exports): WebAssembly.Exports {
    const guarded = Object.entries(exports).map(([name, value]) =>
      typeof value === "function"
        ? [name, this.#watched(name, value as (...given: unknown[]) => unknown)]
        : [name, value],
    );
    return Object.fromEntries(guarded);
  }

  #watched(name: string, call: (...given: unknown[]) => unknown): (...given: unknown[]) => unknown {
    // What the platform calls has nobody to throw to: Node would end the process. What is released is gone already.
    // The build has marked these exports (scripts/short-names.mjs).
    const isSilent = name.startsWith("_");
    return (...given) => {
      if (this.#error === undefined) {
        try {
          return call(...given);
        } catch (thrown) {
          // Out of a task nothing is thrown but what broke it off in the middle.
          if (!isSilent && !isTrap(thrown)) throw thrown;
          this.#end(thrown);
        }
      }
      if (isSilent) return NO_ERROR;
      throw this.#error;
    };
  }

  #end(trap: unknown): void {
    if (this.#error !== undefined) return;
    const error = new CrabletError(
      {
        kind: "internal",
        message:
          `crablet failed inside (${messageOf(trap)}); please report it. What ran is over, the next call starts afresh, ` +
          "and session.resume() goes on from the last step",
      },
      { cause: trap },
    );
    this.#error = error;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener(error);
  }
}

/** What a callback returns, as the glue reads it: a value and a flag that says whether that is an error. */
const NO_ERROR: readonly unknown[] = [];

type Timer = ReturnType<typeof setTimeout>;

/** An overflow of the stack is a RangeError, and leaves the memory as unknown as a trap does. */
function isTrap(thrown: unknown): boolean {
  return thrown instanceof WebAssembly.RuntimeError || thrown instanceof RangeError;
}
