import { CrabletError, type ErrorInfo, invalidInput, messageOf } from "../error.js";
import type { AgentEvent } from "../event.js";
import type { StopReason, Usage } from "../message.js";
import { callName } from "./suspended.js";

/** Writes the events of a run as a completion, or as the chunks of one. */
export class CompletionWriter {
  readonly #head: { readonly id: string; readonly created: number; readonly model: string };
  readonly #key: string;
  readonly #callersTools: Readonly<Record<string, unknown>>;
  readonly #errorText: (error: ErrorInfo) => string;
  readonly #names = new Map<string, string>();
  readonly #calls: { readonly name: string; readonly input: unknown }[] = [];
  #text = "";
  #isSeparate = true;
  #isBegun = false;
  #usage: Usage = {};
  #stopReason: StopReason = "stop";

  constructor(
    model: string,
    key: string,
    callersTools: Readonly<Record<string, unknown>>,
    errorText: (error: ErrorInfo) => string,
  ) {
    this.#head = { id: `chatcmpl-${key}`, created: Math.floor(Date.now() / 1000), model };
    this.#key = key;
    this.#callersTools = callersTools;
    this.#errorText = errorText;
  }

  /** Takes an event, and gives what of it is new text. */
  take(event: AgentEvent): string {
    switch (event.type) {
      case "step-start":
        this.#isSeparate = this.#text === "";
        return "";
      case "text-delta": {
        const delta = `${this.#isSeparate ? "" : "\n\n"}${event.delta}`;
        this.#isSeparate = true;
        this.#text += delta;
        return delta;
      }
      case "tool-call":
        this.#names.set(event.callId, event.toolName);
        return "";
      case "tool-start": {
        // A resumed run tells of a call without its name again only where it was asked before; those have results by now.
        const name = this.#names.get(event.callId) ?? "";
        if (event.clientSide !== true) return "";
        if (!Object.hasOwn(this.#callersTools, name) && name !== "")
          throw invalidInput(`the agent's tool ${name} is client-side, and nobody performs it over this wire`);
        if (name !== "") this.#calls.push({ name, input: event.input });
        return "";
      }
      case "step-end":
        this.#usage = plus(this.#usage, event.usage);
        return "";
      case "run-end":
        this.#usage = event.usage;
        this.#stopReason = event.stopReason;
        return "";
      default:
        return "";
    }
  }

  /** The whole completion. */
  completion(): unknown {
    const calls = this.#toolCalls();
    const message = {
      role: "assistant",
      content: this.#text === "" && calls.length > 0 ? null : this.#text,
      refusal: null,
      ...(calls.length > 0 && { tool_calls: calls }),
    };
    const choice = { index: 0, message, finish_reason: this.#finishReason(), logprobs: null };
    return { ...this.#head, object: "chat.completion", choices: [choice], usage: usageOf(this.#usage) };
  }

  /** The lines that tell of an event. */
  chunks(event: AgentEvent): string {
    const content = this.take(event);
    return content === "" ? "" : this.#begin() + this.#chunk({ content });
  }

  /** The lines that end the stream. */
  last(includesUsage: boolean): string {
    const calls = this.#toolCalls().map((call, index) => ({ index, ...call }));
    let lines = this.#begin();
    if (calls.length > 0) lines += this.#chunk({ tool_calls: calls });
    lines += this.#chunk({}, this.#finishReason());
    if (includesUsage)
      lines += line({ ...this.#head, object: "chat.completion.chunk", choices: [], usage: usageOf(this.#usage) });
    return `${lines}data: [DONE]\n\n`;
  }

  /** The lines that say that the run failed. */
  failed(thrown: unknown): string {
    const { kind = "internal", retryable = false } = CrabletError.is(thrown) ? thrown : {};
    const message = this.#errorText({ kind, retryable, message: messageOf(thrown) });
    return line({ error: { message, type: "server_error", param: null, code: kind } });
  }

  /** The lines that say that the answer will not be completed, since its text cannot be taken back. */
  brokenOff(): string {
    const message = "the answer broke off, and what was sent cannot be taken back";
    return this.failed(new CrabletError({ kind: "stream-truncated", message, retryable: true }));
  }

  #begin(): string {
    if (this.#isBegun) return "";
    this.#isBegun = true;
    return this.#chunk({ role: "assistant", content: "" });
  }

  #chunk(delta: unknown, finishReason: string | null = null): string {
    const choice = { index: 0, delta, finish_reason: finishReason, logprobs: null };
    return line({ ...this.#head, object: "chat.completion.chunk", choices: [choice] });
  }

  #toolCalls(): { id: string; type: "function"; function: { name: string; arguments: string } }[] {
    return this.#calls.map(({ name, input }, index) => ({
      id: callName(this.#key, index),
      type: "function",
      function: { name, arguments: JSON.stringify(input ?? {}) },
    }));
  }

  #finishReason(): string {
    if (this.#calls.length > 0) return "tool_calls";
    if (this.#stopReason === "length" || this.#stopReason === "limit") return "length";
    return this.#stopReason === "content-filter" || this.#stopReason === "refusal" ? "content_filter" : "stop";
  }
}

const line = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

function usageOf({ inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, reasoningTokens = 0 }: Usage): unknown {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cacheReadTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  };
}

function plus(one: Usage, other: Usage): Usage {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]) as Set<keyof Usage>;
  return Object.fromEntries([...names].map((name) => [name, (one[name] ?? 0) + (other[name] ?? 0)]));
}
