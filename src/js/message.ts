import { toBase64 } from "./base64.js";
import { invalidInput } from "./error.js";

/** Tokens as the provider counted them. What it did not say is absent. */
export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly cacheReadTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly reasoningTokens?: number;
  /** US dollars, by the prices of the model, or as OpenRouter or a function says; absent when neither is known. */
  readonly cost?: number;
}

/** Text. */
export interface TextPart {
  readonly type: "text";
  readonly text: string;
}

/** An image, a sound or a document: its bytes in base64 as `data`, or its address as `url`. */
export interface FilePart {
  readonly type: "image" | "audio" | "file";
  readonly mediaType: string;
  readonly data?: string;
  readonly url?: string;
  readonly name?: string;
}

/** What the model reasoned, or a summary of it; empty when the provider hides it. */
export interface ReasoningPart {
  readonly type: "reasoning";
  readonly text: string;
}

/** A tool call of the model. One that is not valid JSON has `inputText` and `invalid` instead of `input`; it is never run. */
export interface ToolCallPart {
  readonly type: "tool-call";
  readonly callId: string;
  readonly toolName: string;
  readonly input?: unknown;
  readonly inputText?: string;
  readonly invalid?: string;
}

/** The one result of a tool call. */
export interface ToolResultPart {
  readonly type: "tool-result";
  readonly callId: string;
  readonly toolName: string;
  /** What the model reads. */
  readonly content: readonly (TextPart | FilePart)[];
  /** What the tool returned, where it returned a value. */
  readonly output?: unknown;
  /** Data for a user interface that the model does not see. */
  readonly details?: unknown;
  readonly isError: boolean;
}

/** Something the answer refers to. */
export interface SourcePart {
  readonly type: "source";
  readonly url?: string;
  readonly title?: string;
}

/** A block that only the provider understands; kept and sent back. */
export interface ProviderPart {
  readonly type: "provider";
  readonly kind: string;
}

/** A user's message. */
export interface UserMessage {
  readonly id?: string;
  readonly role: "user";
  readonly content: readonly (TextPart | FilePart)[];
  /** How it came into the conversation; a prompt when absent. */
  readonly origin?: "prompt" | "steered" | "follow-up" | "compacted" | "nudge" | (string & {});
}

/** Which model: the wire protocol, the provider, and the provider's name of it. */
export interface ModelReference {
  readonly wire: string;
  readonly provider: string;
  readonly id: string;
}

/** A model's message. */
export interface AssistantMessage {
  readonly id?: string;
  readonly role: "assistant";
  readonly content: readonly (TextPart | ReasoningPart | ToolCallPart | SourcePart | FilePart | ProviderPart)[];
  readonly model?: ModelReference;
  readonly stopReason?: StopReason;
  readonly usage?: Usage;
}

/** The results of the tool calls of the assistant message before it. */
export interface ToolMessage {
  readonly id?: string;
  readonly role: "tool";
  readonly content: readonly ToolResultPart[];
}

/** One entry of a conversation. */
export type Message = UserMessage | AssistantMessage | ToolMessage;

/** Why a model stopped, or why the loop did. */
export type StopReason =
  | "stop"
  | "length"
  | "tool-use"
  | "refusal"
  | "content-filter"
  | "error"
  | "aborted"
  | "limit"
  | "terminated"
  | "suspended"
  | (string & {});

/** A prompt: text, or text and files. */
export type Input = string | readonly (TextPart | BytesPart | FilePart)[];

/** A file part whose bytes are given as they are. */
export interface BytesPart {
  readonly type: "image" | "audio" | "file";
  readonly mediaType: string;
  readonly data: Uint8Array;
  readonly name?: string;
}

/** @internal The parts of a prompt in their JSON form. */
export function contentOf(input: Input): readonly (TextPart | FilePart)[] {
  if (typeof input === "string") return [{ type: "text", text: input }];
  if (!Array.isArray(input)) throw invalidInput("a message is text or parts");
  return input.map((part) => (isBytes(part) ? { ...part, data: toBase64(part.data) } : part));
}

function isBytes(part: TextPart | BytesPart | FilePart): part is BytesPart {
  return (part as BytesPart | undefined)?.data?.BYTES_PER_ELEMENT === 1;
}
