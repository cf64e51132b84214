import type { ErrorInfo } from "./error.js";
import type {
  AssistantMessage,
  FilePart,
  ModelReference,
  SourcePart,
  StopReason,
  TextPart,
  Usage,
  UserMessage,
} from "./message.js";
import type { ToolSet } from "./tool.js";

/** The name of a tool: those of the agent are suggested, those of MCP servers are possible. */
export type ToolName<T extends ToolSet = ToolSet> = (keyof T & string) | (string & {});

/** A complete tool call. */
export interface ToolCall<T extends ToolSet = ToolSet> {
  readonly callId: string;
  readonly toolName: ToolName<T>;
  readonly input: unknown;
  /** The MCP server the tool comes from, if any. */
  readonly server?: string;
}

/** What every event has. */
export interface EventBase {
  readonly runId: string;
  /** The step, from 0: one model call and its tools. */
  readonly step: number;
}

/**
 * What happens in a run, in order. Plain data that survives `structuredClone` and JSON. Types and fields may be added, so
 * skip what you do not know. `run-end` is always the last one, and always there once a run has begun.
 */
export type AgentEvent<T extends ToolSet = ToolSet> = EventBase &
  (
    | {
        readonly type: "run-start" | "step-start" | "run-suspended" | "compaction-start";
      }
    /** A steered message entered the history, or will not: the run ended before, or it was taken out of the queue. */
    | { readonly type: "steer-delivered" | "steer-dropped"; readonly messageId: string }
    | { readonly type: "message-added"; readonly message: UserMessage }
    | { readonly type: "text-start" | "text-end" | "reasoning-start" | "reasoning-end"; readonly id: string }
    | { readonly type: "text-delta" | "reasoning-delta"; readonly id: string; readonly delta: string }
    | {
        readonly type: "tool-input-start";
        readonly id: string;
        readonly callId: string;
        readonly toolName: ToolName<T>;
      }
    | { readonly type: "tool-input-delta"; readonly id: string; readonly callId: string; readonly delta: string }
    | { readonly type: "tool-input-end"; readonly id: string; readonly callId: string }
    | ({ readonly type: "tool-call" } & ToolCall<T>)
    | ({
        readonly type: "approval-request";
        /** Names the input: a decision that gives it holds for no other. */
        readonly inputHash: string;
      } & ToolCall<T>)
    | { readonly type: "approval-response"; readonly callId: string; readonly allowed: boolean }
    | {
        readonly type: "tool-start";
        readonly callId: string;
        readonly input: unknown;
        /** Present for a tool without `execute`: the run waits for its result. */
        readonly clientSide?: true;
      }
    /** Something happened in the run of the agent that works on the call. Its run, steps and blocks are its own. */
    | { readonly type: "sub-agent-event"; readonly callId: string; readonly event: AgentEvent }
    | { readonly type: "tool-progress"; readonly callId: string; readonly data: unknown }
    | {
        readonly type: "tool-result";
        readonly callId: string;
        readonly toolName: ToolName<T>;
        /** What the tool returned, or the text that the model reads. */
        readonly output: unknown;
        /** What the model reads, where that is more than `output` as text. */
        readonly content?: readonly (TextPart | FilePart)[];
        /** Data for a user interface that the model does not see, as `toolOutput` was given it. */
        readonly details?: unknown;
        readonly isError: boolean;
      }
    | { readonly type: "source"; readonly source: SourcePart }
    | { readonly type: "file"; readonly file: FilePart }
    | {
        readonly type: "step-retry";
        readonly attempt: number;
        readonly delayMs: number;
        readonly error: ErrorInfo;
        /** The model that makes the attempt, when it is one of `fallbackModels`. */
        readonly model?: ModelReference;
      }
    | { readonly type: "compaction-start" }
    | {
        /** From now on `message` is sent in the place of the oldest messages but the first. The history keeps them. */
        readonly type: "compaction-end";
        readonly message: UserMessage;
        /** How many messages it stands for. */
        readonly replaced: number;
        readonly tokensBefore: number;
        readonly tokensAfter: number;
      }
    | {
        /** A schema has keywords that are not checked, and no Standard Schema checks them. */
        readonly type: "schema-unchecked";
        /** The tool whose input has the schema; absent for the output of the run. */
        readonly toolName?: ToolName<T>;
        /** The keywords, as JSON pointers into the schema. */
        readonly keywords: readonly string[];
      }
    | { readonly type: "limit-reached"; readonly limit: "steps" | "tokens" | "cost" | "time" | "loop" | (string & {}) }
    | { readonly type: "checkpoint-saved"; readonly seq: number }
    | { readonly type: "step-end"; readonly message: AssistantMessage; readonly usage: Usage }
    | {
        readonly type: "run-end";
        readonly stopReason: StopReason;
        readonly usage: Usage;
        /** The text of the last answer. */
        readonly text: string;
        /** What the `output` of the run asked for, as the model wrote it. */
        readonly output?: unknown;
        /** The answer of a step that was cut short, as the history keeps it: such a step has no `step-end`. */
        readonly message?: AssistantMessage;
        readonly error?: ErrorInfo;
      }
  );

/** @internal The event without the sub-agents that it comes from. */
export function innermost(event: AgentEvent): AgentEvent {
  return event.type === "sub-agent-event" ? innermost(event.event) : event;
}
