import type { AgentEvent } from "./event.js";

/**
 * What a wire tells of the attempts of a step: `reset` tells of all, for readers that can take back what they were told;
 * `buffer` tells of a step once the model has finished it; `stop` tells of all until an attempt that was shown is to be followed
 * by another, which such a reader would take for more of the same answer.
 *
 * @internal
 */
export type StepMode = "reset" | "buffer" | "stop";

/** @internal Keeps a wire from telling the same text twice. */
export class StepFilter {
  readonly #mode: StepMode;
  #held: AgentEvent[] = [];
  #isShown = false;
  /** Whether something was shown that is not to be repeated: the run is to be ended. */
  isStopped = false;

  constructor(mode: StepMode) {
    this.#mode = mode;
  }

  /** The events to tell of now, in order. A `step-retry` among them takes back what was shown of its step. */
  take(event: AgentEvent): readonly AgentEvent[] {
    if (this.isStopped) return event.type === "run-end" ? [event] : [];
    switch (event.type) {
      case "step-start":
        this.#isShown = false;
        return [event];
      case "step-retry":
        this.#held = [];
        if (!this.#isShown) return [];
        this.#isShown = false;
        this.isStopped = this.#mode === "stop";
        return this.isStopped ? [] : [event];
      case "text-start":
      case "text-delta":
      case "text-end":
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
      case "tool-input-start":
      case "tool-input-delta":
      case "tool-input-end":
      case "tool-call":
      case "source":
      case "file":
        if (this.#mode === "buffer") {
          this.#held.push(event);
          return [];
        }
        this.#isShown = true;
        return [event];
      case "checkpoint-saved":
        return [event];
      default: {
        // The model has finished its part of the step: there is no further attempt.
        const held = this.#held;
        this.#held = [];
        return [...held, event];
      }
    }
  }
}
