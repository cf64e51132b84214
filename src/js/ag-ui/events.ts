import type { Usage } from "../message.js";

/** A call in a message of AG-UI. */
export interface AgUiToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

/** A message of AG-UI. */
export type AgUiMessage = { readonly id: string } & (
  | { readonly role: "user" | "tool"; readonly content: string | readonly unknown[]; readonly toolCallId?: string }
  | { readonly role: "assistant"; readonly content?: string; readonly toolCalls?: readonly AgUiToolCall[] }
  | { readonly role: "reasoning" | "system" | "developer"; readonly content: string }
);

/** What a run asks before it goes on: whether a call is allowed. */
export interface AgUiInterrupt {
  readonly id: string;
  readonly reason: string;
  readonly message?: string;
  readonly toolCallId?: string;
  readonly responseSchema?: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** How a run of AG-UI ended. */
export type AgUiOutcome =
  | { readonly type: "success"; readonly pendingToolCallIds?: readonly string[] }
  | { readonly type: "interrupt"; readonly interrupts: readonly AgUiInterrupt[] }
  | { readonly type: "cancelled" };

/** Tokens, as AG-UI counts them. */
export interface AgUiUsage {
  readonly provider?: string;
  readonly model?: string;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly totalTokens?: number;
  readonly reasoningTokens?: number;
  readonly cachedInputTokens?: number;
  readonly cacheWriteInputTokens?: number;
}

/** An event of AG-UI: those that crablet writes. */
export type AgUiEvent =
  | { readonly type: "RUN_STARTED"; readonly threadId: string; readonly runId: string }
  | {
      readonly type: "RUN_FINISHED";
      readonly threadId: string;
      readonly runId: string;
      readonly outcome?: AgUiOutcome;
      readonly result?: unknown;
      readonly usage?: readonly AgUiUsage[];
    }
  | { readonly type: "RUN_ERROR"; readonly message: string; readonly code?: string }
  | { readonly type: "STEP_STARTED" | "STEP_FINISHED"; readonly stepName: string }
  | { readonly type: "TEXT_MESSAGE_START"; readonly messageId: string; readonly role: "assistant" | "user" }
  | { readonly type: "TEXT_MESSAGE_CONTENT"; readonly messageId: string; readonly delta: string }
  | { readonly type: "TEXT_MESSAGE_END"; readonly messageId: string }
  | { readonly type: "REASONING_START" | "REASONING_MESSAGE_END" | "REASONING_END"; readonly messageId: string }
  | { readonly type: "REASONING_MESSAGE_START"; readonly messageId: string; readonly role: "reasoning" }
  | { readonly type: "REASONING_MESSAGE_CONTENT"; readonly messageId: string; readonly delta: string }
  | {
      readonly type: "TOOL_CALL_START";
      readonly toolCallId: string;
      readonly toolCallName: string;
      readonly parentMessageId?: string;
    }
  | { readonly type: "TOOL_CALL_ARGS"; readonly toolCallId: string; readonly delta: string }
  | { readonly type: "TOOL_CALL_END"; readonly toolCallId: string }
  | {
      readonly type: "TOOL_CALL_RESULT";
      readonly messageId: string;
      readonly toolCallId: string;
      readonly content: string;
      readonly role: "tool";
      readonly metadata?: { readonly crablet: { readonly isError: true } };
    }
  | { readonly type: "MESSAGES_SNAPSHOT"; readonly messages: readonly AgUiMessage[] }
  | { readonly type: "CUSTOM"; readonly name: string; readonly value: unknown };

/** @internal */
export function agUiUsageOf(usage: Usage): AgUiUsage {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage;
  const counts = {
    inputTokens,
    outputTokens,
    reasoningTokens,
    cachedInputTokens: cacheReadTokens,
    cacheWriteInputTokens: cacheWriteTokens,
  };
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== undefined));
}
