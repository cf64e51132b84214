import type { AgentEvent, ToolCall } from "./event.js";
import type { AssistantMessage, Message, ToolResultPart } from "./message.js";

/**
 * The messages of a conversation, kept up to date by its events. What it hands out never changes: the same array until
 * something was added.
 *
 * @internal
 */
export class Transcript {
  #messages: Message[];
  #shown: readonly Message[] | undefined;
  #results = new Map<string, ToolResultPart>();

  constructor(messages: readonly Message[] = []) {
    this.#messages = [...messages];
  }

  get messages(): readonly Message[] {
    this.#shown ??= [...this.#messages];
    return this.#shown;
  }

  apply(event: AgentEvent): void {
    switch (event.type) {
      case "message-added":
        this.#push(event.message);
        break;
      case "tool-result": {
        const { runId: _run, step: _step, content, ...result } = event;
        const told = content ?? [{ type: "text", text: String(event.output) }];
        this.#results.set(event.callId, { ...result, content: told });
        break;
      }
      case "step-end":
        this.#step(event.message);
        break;
      case "run-end":
        if (event.message !== undefined) this.#step(event.message);
        break;
      default:
    }
  }

  #step(message: AssistantMessage): void {
    // An answer without content is shown and not kept.
    if (message.content.length === 0) return;
    this.#push(message);
    const results: ToolResultPart[] = [];
    for (const part of message.content) {
      const result = part.type === "tool-call" ? this.#results.get(part.callId) : undefined;
      if (result !== undefined) results.push(result);
    }
    this.#results.clear();
    if (results.length > 0) this.#push({ role: "tool", content: results });
  }

  #push(message: Message): void {
    // A run that is resumed in the middle of a step tells of a message that the restored history has already.
    if (message.id !== undefined && this.#messages.at(-1)?.id === message.id) this.#messages.pop();
    this.#messages.push(message);
    this.#shown = undefined;
  }
}

type Draft =
  | { type: "text" | "reasoning"; text: string }
  | { type: "tool-call"; callId: string; toolName: string; inputText: string }
  | DraftCall;
type DraftCall = { type: "tool-call" } & ToolCall;

/**
 * The assistant message that is being streamed.
 *
 * @internal
 */
export class StreamingMessage {
  #parts = new Map<string, Draft>();
  #shown: AssistantMessage | undefined;

  /** The message so far; `undefined` while nothing has come. */
  get message(): AssistantMessage | undefined {
    if (this.#parts.size === 0) return undefined;
    this.#shown ??= { role: "assistant", content: [...this.#parts.values()].map((part) => ({ ...part })) };
    return this.#shown;
  }

  apply(event: AgentEvent): void {
    switch (event.type) {
      case "text-delta":
        this.#append(event.id, "text", event.delta);
        break;
      case "reasoning-delta":
        this.#append(event.id, "reasoning", event.delta);
        break;
      case "tool-input-start":
        this.#set(event.id, { type: "tool-call", callId: event.callId, toolName: event.toolName, inputText: "" });
        break;
      case "tool-input-delta": {
        const part = this.#parts.get(event.id);
        if (part !== undefined && "inputText" in part)
          this.#set(event.id, { ...part, inputText: part.inputText + event.delta });
        break;
      }
      case "tool-call":
        this.#call(event);
        break;
      case "step-start":
      case "step-retry":
      case "step-end":
      case "run-end":
        this.#parts.clear();
        this.#shown = undefined;
        break;
      default:
    }
  }

  #append(id: string, type: "text" | "reasoning", delta: string): void {
    const part = this.#parts.get(id);
    const before = part !== undefined && "text" in part ? part.text : "";
    this.#set(id, { type, text: before + delta });
  }

  #call({ callId, toolName, input }: ToolCall): void {
    for (const [id, part] of this.#parts) {
      if (part.type === "tool-call" && part.callId === callId) {
        this.#set(id, { type: "tool-call", callId, toolName, input });
        return;
      }
    }
    this.#set(`call ${callId}`, { type: "tool-call", callId, toolName, input });
  }

  #set(id: string, part: Draft): void {
    this.#parts.set(id, part);
    this.#shown = undefined;
  }
}
