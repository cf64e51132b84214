import { CrabletError, type ErrorInfo, messageOf } from "../error.js";
import { type AgentEvent, innermost, type ToolCall } from "../event.js";
import { StepFilter } from "../step-filter.js";
import { type AgUiEvent, type AgUiInterrupt, type AgUiMessage, agUiUsageOf } from "./events.js";
import { ToldMessages } from "./told.js";

/** How a run is written as events of AG-UI. */
export interface AgUiOptions {
  /** Shows a step once the model has finished it, so that nothing shown is ever taken back. Default: false. */
  readonly bufferSteps?: boolean;
  /** What the client is told of an error. Default: its kind, since a message may name accounts and addresses. */
  readonly errorText?: (error: ErrorInfo) => string;
}

/** Which run of which conversation it is, as the client asked for it, and the messages that the client has. */
export interface AgUiRun {
  readonly threadId: string;
  readonly runId: string;
  readonly messages?: readonly AgUiMessage[];
}

/** Writes the events of a run as events of AG-UI. */
export class AgUiWriter {
  readonly #ids: { readonly threadId: string; readonly runId: string };
  readonly #errorText: (error: ErrorInfo) => string;
  readonly #filter: StepFilter;
  readonly #told: ToldMessages;
  readonly #asked = new Map<string, ToolCall>();
  readonly #clientCalls = new Set<string>();
  /** What ends the messages and calls that are open, by what they are. */
  readonly #open = new Map<string, AgUiEvent[]>();
  #step: string | undefined;
  /** The message of the step that calls belong to. */
  #parent: string | undefined;
  #isOver = false;

  constructor({ threadId, runId, messages = [] }: AgUiRun, { bufferSteps, errorText }: AgUiOptions) {
    this.#ids = { threadId, runId };
    this.#errorText = errorText ?? (({ kind }) => `the answer failed (${kind})`);
    this.#filter = new StepFilter(bufferSteps === true ? "buffer" : "reset");
    this.#told = new ToldMessages(messages);
  }

  /** The events that tell of an event of a run. */
  write(event: AgentEvent): AgUiEvent[] {
    return this.#tell(this.#filter.take(event).flatMap((taken) => this.#events(taken)));
  }

  /** The events that say that the run waits. */
  suspend(): AgUiEvent[] {
    const interrupts = [...this.#asked.values()].map(interruptOf);
    const calls = [...this.#clientCalls];
    const outcome =
      interrupts.length > 0
        ? ({ type: "interrupt", interrupts } as const)
        : ({ type: "success", ...(calls.length > 0 && { pendingToolCallIds: calls }) } as const);
    this.#isOver = true;
    return [...this.#closed(), { type: "RUN_FINISHED", ...this.#ids, outcome }];
  }

  /** The events that say what ended the run without a word of its events. */
  fail(thrown: unknown): AgUiEvent[] {
    if (this.#isOver) return [];
    this.#isOver = true;
    const { kind = "internal", retryable = false } = CrabletError.is(thrown) ? thrown : {};
    const message = this.#errorText({ kind, retryable, message: messageOf(thrown) });
    return [...this.#closed(), { type: "RUN_ERROR", message, code: kind }];
  }

  #tell(events: AgUiEvent[]): AgUiEvent[] {
    for (const event of events) this.#told.apply(event);
    return events;
  }

  #events(event: AgentEvent): AgUiEvent[] {
    switch (event.type) {
      case "run-start":
        return [{ type: "RUN_STARTED", ...this.#ids }];
      case "step-start":
        this.#told.mark();
        this.#step = `step ${event.step}`;
        this.#parent = undefined;
        return [{ type: "STEP_STARTED", stepName: this.#step }];
      case "step-end":
        return this.#closed();
      case "step-retry":
        this.#parent = undefined;
        return [...this.#ends(), { type: "MESSAGES_SNAPSHOT", messages: this.#told.takeBack() }];
      case "text-start":
        this.#parent ??= this.#idOf(event);
        return this.#opened(
          event.id,
          [{ type: "TEXT_MESSAGE_START", messageId: this.#idOf(event), role: "assistant" }],
          [{ type: "TEXT_MESSAGE_END", messageId: this.#idOf(event) }],
        );
      case "text-delta":
        return event.delta === ""
          ? []
          : [{ type: "TEXT_MESSAGE_CONTENT", messageId: this.#idOf(event), delta: event.delta }];
      case "reasoning-start": {
        const messageId = this.#idOf(event);
        return this.#opened(
          event.id,
          [
            { type: "REASONING_START", messageId },
            { type: "REASONING_MESSAGE_START", messageId, role: "reasoning" },
          ],
          [
            { type: "REASONING_MESSAGE_END", messageId },
            { type: "REASONING_END", messageId },
          ],
        );
      }
      case "reasoning-delta":
        return event.delta === ""
          ? []
          : [{ type: "REASONING_MESSAGE_CONTENT", messageId: this.#idOf(event), delta: event.delta }];
      case "text-end":
      case "reasoning-end":
      case "tool-input-end":
        return this.#ended(event.id);
      case "tool-input-start": {
        this.#parent ??= `${event.runId}_${event.step}`;
        const { callId: toolCallId, toolName: toolCallName } = event;
        const start = { type: "TOOL_CALL_START", toolCallId, toolCallName, parentMessageId: this.#parent } as const;
        return this.#opened(event.id, [start], [{ type: "TOOL_CALL_END", toolCallId }]);
      }
      case "tool-input-delta":
        return event.delta === "" ? [] : [{ type: "TOOL_CALL_ARGS", toolCallId: event.callId, delta: event.delta }];
      case "source":
        return [{ type: "CUSTOM", name: "source", value: event.source }];
      case "file":
        return [{ type: "CUSTOM", name: "file", value: event.file }];
      case "run-end":
        return this.#end(event);
      case "sub-agent-event": {
        const within = innermost(event);
        return within.type === "tool-call" ? wholeCall(within) : this.#ofCall(within);
      }
      default:
        return this.#ofCall(event);
    }
  }

  /** What happens to a call, which may be one of a sub-agent. */
  #ofCall(event: AgentEvent): AgUiEvent[] {
    switch (event.type) {
      case "tool-progress":
        return [{ type: "CUSTOM", name: "tool-progress", value: { toolCallId: event.callId, data: event.data } }];
      case "approval-request":
        this.#asked.set(event.callId, event);
        return [];
      case "approval-response":
        this.#asked.delete(event.callId);
        return [];
      case "tool-start":
        if (event.clientSide === true) this.#clientCalls.add(event.callId);
        return [];
      case "tool-result": {
        const { callId: toolCallId, output, isError } = event;
        this.#clientCalls.delete(toolCallId);
        const content = typeof output === "string" ? output : JSON.stringify(output ?? null);
        const failed = isError ? { metadata: { crablet: { isError: true } } as const } : {};
        return [
          { type: "TOOL_CALL_RESULT", messageId: `result_${toolCallId}`, toolCallId, content, role: "tool", ...failed },
        ];
      }
      default:
        return [];
    }
  }

  #end({ stopReason, usage, error }: AgentEvent & { type: "run-end" }): AgUiEvent[] {
    if (error !== undefined) return this.fail(new CrabletError(error));
    this.#isOver = true;
    const outcome = stopReason === "aborted" ? ({ type: "cancelled" } as const) : ({ type: "success" } as const);
    const finished = { type: "RUN_FINISHED", ...this.#ids, outcome, usage: [agUiUsageOf(usage)] } as const;
    return [...this.#closed(), finished];
  }

  #idOf({ runId, id }: { readonly runId: string; readonly id: string }): string {
    return `${runId}_${id}`;
  }

  #opened(id: string, start: AgUiEvent[], end: AgUiEvent[]): AgUiEvent[] {
    this.#open.set(id, end);
    return start;
  }

  #ended(id: string): AgUiEvent[] {
    const end = this.#open.get(id) ?? [];
    this.#open.delete(id);
    return end;
  }

  /** Ends the messages and calls that are open. */
  #ends(): AgUiEvent[] {
    return [...this.#open.keys()].flatMap((id) => this.#ended(id));
  }

  /** Ends all that is open: a run that ends may leave nothing open. */
  #closed(): AgUiEvent[] {
    const step = this.#step;
    this.#step = undefined;
    return [...this.#ends(), ...(step === undefined ? [] : [{ type: "STEP_FINISHED", stepName: step } as const])];
  }
}

function wholeCall({ callId: toolCallId, toolName: toolCallName, input }: ToolCall): AgUiEvent[] {
  return [
    { type: "TOOL_CALL_START", toolCallId, toolCallName },
    { type: "TOOL_CALL_ARGS", toolCallId, delta: JSON.stringify(input ?? {}) },
    { type: "TOOL_CALL_END", toolCallId },
  ];
}

function interruptOf({ callId, toolName, input }: ToolCall): AgUiInterrupt {
  return {
    id: callId,
    reason: "tool_approval",
    message: `May ${toolName} run?`,
    toolCallId: callId,
    responseSchema: {
      type: "object",
      properties: { approved: { type: "boolean" }, reason: { type: "string" } },
      required: ["approved"],
    },
    metadata: { toolName, input },
  };
}
