import { type AgentEvent, innermost } from "../event.js";
import type { Run } from "../run.js";
import { type ToolOutput, toolOutput } from "../tool.js";
import type { ReadInput } from "./session-inputs.js";

type Answer = Extract<ReadInput["input"], { readonly type: "approve" | "tool-result" }>;

/**
 * The calls that a run asks a person about, or a client to perform, and their answers.
 *
 * @internal
 */
export class AskedCalls {
  readonly #asked = new Map<string, Answer["type"]>();

  /** Follows an event of the run. */
  note(event: AgentEvent): void {
    const within = innermost(event);
    switch (within.type) {
      case "approval-request":
        this.#asked.set(within.callId, "approve");
        break;
      case "tool-start":
        if (within.clientSide === true) this.#asked.set(within.callId, "tool-result");
        break;
      case "approval-response":
      case "tool-result":
        this.#asked.delete(within.callId);
        break;
      default:
    }
  }

  /** Nothing is asked any more. */
  clear(): void {
    this.#asked.clear();
  }

  /** Gives the run an answer; `false` when the call does not wait for one of this kind. */
  answer(run: Run<any>, answer: Answer): boolean {
    if (this.#asked.get(answer.callId) !== answer.type) return false;
    if (answer.type === "approve") run.approve(answer.callId, answer.allow, answer.reason, answer.inputHash);
    else run.toolResult(answer.callId, givenOutput(answer.output));
    return true;
  }
}

/** What a client gave as the output of a call, as a run takes it. */
function givenOutput(output: unknown): unknown {
  if (typeof output !== "object" || output === null) return output;
  if ("content" in output) return toolOutput(output as ToolOutput);
  return "output" in output ? output.output : undefined;
}
