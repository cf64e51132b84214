import { CrabletError, type ErrorInfo, messageOf } from "./error.js";
import { type AgentEvent, innermost } from "./event.js";
import type { FilePart, StopReason, TextPart, Usage } from "./message.js";
import { StepFilter } from "./step-filter.js";

/** A part of a message that a user wrote, as the AI SDK has it. */
export type UIContentPart =
  | { type: "text"; text: string }
  | { type: "file"; mediaType: string; url: string; filename?: string };

/** Why an answer is over, in the words of the AI SDK. */
export type UIFinishReason = "stop" | "length" | "content-filter" | "tool-calls" | "error" | "other";

/** What a finished message says of itself. */
export interface UIMessageMetadata {
  /** Tokens of the run. */
  readonly usage: Usage;
  readonly stopReason: StopReason;
}

/** One chunk of the AI SDK's UI message stream, version 1: those that crablet writes. */
export type UIMessageChunk =
  | { type: "start"; messageId?: string }
  | { type: "start-step" | "finish-step" | "reset-step" }
  | { type: "text-start" | "text-end" | "reasoning-start" | "reasoning-end"; id: string }
  | { type: "text-delta" | "reasoning-delta"; id: string; delta: string }
  | { type: "tool-input-start"; toolCallId: string; toolName: string }
  | { type: "tool-input-delta"; toolCallId: string; inputTextDelta: string }
  | {
      type: "tool-input-available";
      toolCallId: string;
      toolName: string;
      input: unknown;
      /** Present for a call of a sub-agent: the call that the sub-agent works on. */
      providerMetadata?: { crablet: { within: string } };
    }
  | { type: "tool-approval-request"; approvalId: string; toolCallId: string }
  | { type: "tool-approval-response"; approvalId: string; approved: boolean }
  | { type: "tool-output-available"; toolCallId: string; output: unknown; preliminary?: boolean }
  | { type: "tool-output-error"; toolCallId: string; errorText: string }
  | { type: "tool-output-denied"; toolCallId: string }
  | { type: "source-url"; sourceId: string; url: string; title?: string }
  | { type: "source-document"; sourceId: string; mediaType: string; title: string }
  | { type: "file"; url: string; mediaType: string }
  | { type: "steering-message"; id: string; parts: UIContentPart[] }
  | { type: "finish"; finishReason?: UIFinishReason; messageMetadata?: unknown }
  | { type: "abort" }
  | { type: "error"; errorText: string };

/** How a run is written as a UI message stream. */
export interface UIMessageStreamOptions {
  /**
   * The version of the AI SDK that reads. Before 7 it fails on chunks that take back a failed attempt, so there a run ends with
   * an error instead of trying again after something of the step was shown, unless `bufferSteps` is set. Default: 7.
   */
  readonly forVersion?: 5 | 6 | 7;
  /** Shows a step once the model has finished it, so that nothing shown is ever taken back. Default: false. */
  readonly bufferSteps?: boolean;
  /** The id of the message. Default: made of the id of the prompt; for a run that goes on, the one that the client has. */
  readonly messageId?: string;
  /** What the page is told of an error. Default: its kind, since a message may name accounts and addresses. */
  readonly errorText?: (error: ErrorInfo) => string;
  /** What the finished message says of itself. Default: `UIMessageMetadata`. */
  readonly messageMetadata?: (end: UIMessageMetadata) => unknown;
}

/** @internal Writes the events of a run as chunks. */
export class UIMessageWriter {
  readonly #options: UIMessageStreamOptions;
  readonly #filter: StepFilter;
  readonly #isOld: boolean;
  readonly #denied = new Set<string>();
  #sources = 0;
  #isStarted = false;
  #isOver = false;

  constructor(options: UIMessageStreamOptions) {
    this.#options = options;
    this.#isOld = (options.forVersion ?? 7) < 7;
    this.#filter = new StepFilter(options.bufferSteps ? "buffer" : this.#isOld ? "stop" : "reset");
  }

  /** Whether the run is to be ended: it would show an answer twice. */
  get isStopped(): boolean {
    return this.#filter.isStopped;
  }

  write(events: readonly AgentEvent[]): UIMessageChunk[] {
    return events.flatMap((event) => this.#filter.take(event)).flatMap((event) => this.#chunks(event));
  }

  /** The end of a stream whose run waits. */
  suspend(): UIMessageChunk[] {
    return [{ type: "finish", finishReason: "tool-calls" }];
  }

  /** What ended the run without a word of its events. */
  fail(thrown: unknown): UIMessageChunk[] {
    if (this.#isOver) return [];
    const { kind = "internal", retryable = false } = CrabletError.is(thrown) ? thrown : {};
    return this.#error({ kind, retryable, message: messageOf(thrown) });
  }

  #chunks(event: AgentEvent): UIMessageChunk[] {
    // The prompt comes right after, and names the answer.
    if (event.type === "run-start") return [];
    return [...this.#start(event), ...this.#rest(event)];
  }

  #start(event: AgentEvent): UIMessageChunk[] {
    if (this.#isStarted) return [];
    this.#isStarted = true;
    const prompt = event.type === "message-added" ? event.message.id : undefined;
    const messageId = this.#options.messageId ?? (prompt && answerId(prompt));
    return [{ type: "start", ...(messageId !== undefined && { messageId }) }];
  }

  #rest(event: AgentEvent): UIMessageChunk[] {
    switch (event.type) {
      case "step-start":
        return [{ type: "start-step" }];
      case "step-end":
        return [{ type: "finish-step" }];
      case "step-retry":
        return [{ type: "reset-step" }];
      case "text-start":
      case "text-end":
      case "reasoning-start":
      case "reasoning-end":
        return [{ type: event.type, id: event.id }];
      case "text-delta":
      case "reasoning-delta":
        return [{ type: event.type, id: event.id, delta: event.delta }];
      case "tool-input-start":
        return [{ type: event.type, toolCallId: event.callId, toolName: event.toolName }];
      case "tool-input-delta":
        return [{ type: event.type, toolCallId: event.callId, inputTextDelta: event.delta }];
      case "source": {
        const { url, title } = event.source;
        const sourceId = `source-${this.#sources++}`;
        return [
          url === undefined
            ? { type: "source-document", sourceId, mediaType: "text/plain", title: title ?? "" }
            : { type: "source-url", sourceId, url, ...(title !== undefined && { title }) },
        ];
      }
      case "file":
        return [{ type: "file", url: urlOf(event.file), mediaType: event.file.mediaType }];
      case "message-added": {
        const { origin, id = event.runId, content } = event.message;
        return this.#isOld || (origin !== "steered" && origin !== "follow-up")
          ? []
          : [{ type: "steering-message", id, parts: content.map(uiPartOf) }];
      }
      case "run-end":
        return this.#end(event);
      case "sub-agent-event":
        return this.#call(innermost(event), event.callId);
      default:
        return this.#call(event);
    }
  }

  /** What happens to a call, which may be one of a sub-agent: such calls are told as those of the agent itself. */
  #call(event: AgentEvent, within?: string): UIMessageChunk[] {
    if (!("callId" in event)) return [];
    const { callId: toolCallId } = event;
    switch (event.type) {
      case "tool-call":
        return [
          {
            type: "tool-input-available",
            toolCallId,
            toolName: event.toolName,
            input: event.input,
            ...(within !== undefined && { providerMetadata: { crablet: { within } } }),
          },
        ];
      case "tool-progress":
        return [{ type: "tool-output-available", toolCallId, output: event.data, preliminary: true }];
      case "approval-request":
        return [{ type: "tool-approval-request", approvalId: toolCallId, toolCallId }];
      case "approval-response":
        if (!event.allowed) this.#denied.add(toolCallId);
        return this.#isOld ? [] : [{ type: "tool-approval-response", approvalId: toolCallId, approved: event.allowed }];
      case "tool-result":
        if (this.#denied.has(toolCallId)) return [{ type: "tool-output-denied", toolCallId }];
        return event.isError
          ? [{ type: "tool-output-error", toolCallId, errorText: String(event.output) }]
          : [{ type: "tool-output-available", toolCallId, output: event.output ?? null }];
      default:
        return [];
    }
  }

  #end({ stopReason, usage, error }: AgentEvent & { type: "run-end" }): UIMessageChunk[] {
    if (this.isStopped) return this.#error(BROKEN_OFF);
    if (error !== undefined) return this.#error(error);
    this.#isOver = true;
    if (stopReason === "aborted") return [{ type: "abort" }];
    const { messageMetadata = (end: unknown) => end } = this.#options;
    const finishReason = FINISH_REASONS[stopReason] ?? "other";
    return [{ type: "finish", finishReason, messageMetadata: messageMetadata({ usage, stopReason }) }];
  }

  #error(error: ErrorInfo): UIMessageChunk[] {
    this.#isOver = true;
    const { errorText = ({ kind }: ErrorInfo) => `the answer failed (${kind})` } = this.#options;
    return [
      { type: "error", errorText: errorText(error) },
      { type: "finish", finishReason: "error" },
    ];
  }
}

/** @internal Chunks as the text of Server-Sent Events. */
export const uiEventStream = (chunks: readonly UIMessageChunk[]): string =>
  chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");

/** @internal The id of the answer to a prompt. */
export const answerId = (promptId: string): string => `answer_${promptId}`;

/** @internal */
export function uiPartOf(part: TextPart | FilePart): UIContentPart {
  if (part.type === "text") return { type: "text", text: part.text };
  const { mediaType, name } = part;
  return { type: "file", mediaType, url: urlOf(part), ...(name !== undefined && { filename: name }) };
}

/** @internal */
export const urlOf = ({ url, mediaType, data }: FilePart): string => url ?? `data:${mediaType};base64,${data ?? ""}`;

const FINISH_REASONS: Readonly<Record<string, UIFinishReason>> = {
  stop: "stop",
  terminated: "stop",
  length: "length",
  "tool-use": "tool-calls",
  "content-filter": "content-filter",
  refusal: "content-filter",
};

const BROKEN_OFF: ErrorInfo = {
  kind: "stream-truncated",
  message: "the answer broke off, and this reader cannot take back what it was shown",
  retryable: true,
};
