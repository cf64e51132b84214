/**
 * What runs do, as spans with the names of OpenTelemetry's conventions for generative AI, for any tracing system.
 *
 * @packageDocumentation
 */
import type { AgentEvent } from "./event.js";
import type { AssistantMessage, Message, StopReason, Usage } from "./message.js";

/** A value of an attribute. */
export type SpanAttribute = string | number | boolean | readonly string[];

/** Something that took time, told once it is over. Plain data; times are milliseconds of Unix time. */
export interface Span {
  /** `invoke_agent {agent}`, `chat {model}` or `execute_tool {tool}`. */
  readonly name: string;
  /** `client` for a model call, `internal` for the rest. */
  readonly kind: "client" | "internal";
  /** 32 hexadecimal digits; the same for a run and its sub-agents, and for a run that is resumed elsewhere. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Absent for the outermost run. */
  readonly parentSpanId?: string;
  readonly startTime: number;
  readonly endTime: number;
  readonly attributes: Readonly<Record<string, SpanAttribute>>;
  /** Present when it failed. */
  readonly error?: { readonly type: string; readonly message: string };
}

/** What a trace says. */
export interface TraceOptions {
  /** `gen_ai.agent.name`. */
  readonly agentName?: string;
  /** `gen_ai.conversation.id`. */
  readonly conversationId?: string;
  /**
   * Whether spans hold what was said: prompts, answers, arguments and results, and the messages of errors. Default: false, so
   * that nothing of the user's is in them.
   */
  readonly content?: boolean;
  /** The clock. Default: `Date.now`. */
  readonly now?: () => number;
}

/**
 * An observer for the agent's `onEvent` that gives spans to a function: `new Agent({ onEvent: trace(sink) })`. A run is a span
 * `invoke_agent`; within it are its model calls, one for each attempt, and its tool calls; within the call of a sub-agent is its
 * run. Usage is on model calls and runs. What the function throws goes where what `onEvent` throws goes.
 */
export function trace(sink: (span: Span) => void, options: TraceOptions = {}): (event: AgentEvent) => void {
  const runs = new Map<string, RunTrace>();
  const now = options.now ?? Date.now;
  const names = { agentName: options.agentName, content: options.content === true };
  return (event) => {
    let run = runs.get(event.runId);
    if (run === undefined || event.type === "run-start") {
      const ids = new Ids(event.runId, now());
      run = new RunTrace(sink, now, ids, undefined, { ...names, conversationId: options.conversationId });
      runs.set(event.runId, run);
    }
    run.take(event);
    if (event.type === "run-end") runs.delete(event.runId);
    // Runs that were suspended and never resumed here.
    for (const oldest of runs.keys()) {
      if (runs.size <= MAX_RUNS) break;
      runs.delete(oldest);
    }
  };
}

/** The most runs that are followed at once. */
const MAX_RUNS = 1024;

interface Open {
  readonly spanId: string;
  readonly startTime: number;
}

interface Names {
  readonly agentName: string | undefined;
  readonly conversationId: string | undefined;
  readonly content: boolean;
}

/** A run and what is open in it. */
class RunTrace {
  readonly #sink: (span: Span) => void;
  readonly #now: () => number;
  readonly #ids: Ids;
  readonly #parent: string | undefined;
  readonly #names: Names;
  readonly #own: Open;
  readonly #prompts: Message[] = [];
  /** The model call of the step, and when its answer was over. */
  #chat: (Open & { readonly endTime?: number }) | undefined;
  readonly #tools = new Map<string, Open & { readonly toolName: string; readonly input: unknown }>();
  readonly #within = new Map<string, RunTrace>();

  constructor(sink: (span: Span) => void, now: () => number, ids: Ids, parent: string | undefined, names: Names) {
    this.#sink = sink;
    this.#now = now;
    this.#ids = ids;
    this.#parent = parent;
    this.#names = names;
    this.#own = this.#open();
  }

  take(event: AgentEvent): void {
    switch (event.type) {
      case "message-added":
        if (this.#names.content) this.#prompts.push(event.message);
        break;
      case "step-start":
        this.#chat = this.#open();
        break;
      case "step-retry":
        this.#failChat(event.error);
        // The next attempt begins after the wait.
        this.#chat = { ...this.#open(), startTime: this.#now() + event.delayMs };
        break;
      case "tool-call":
        if (this.#chat !== undefined) this.#chat = { endTime: this.#now(), ...this.#chat };
        this.#tools.set(event.callId, { ...this.#open(), toolName: event.toolName, input: event.input });
        break;
      case "tool-start": {
        const open = this.#tools.get(event.callId) ?? { ...this.#open(), toolName: "unknown" };
        this.#tools.set(event.callId, { ...open, startTime: this.#now(), input: event.input });
        break;
      }
      case "tool-result":
        this.#endTool(event);
        break;
      case "sub-agent-event":
        this.#takeWithin(event);
        break;
      case "step-end":
        this.#endChat(event.message);
        break;
      case "run-end":
        this.#end(event);
        break;
      default:
    }
  }

  #takeWithin({ callId, event }: AgentEvent & { readonly type: "sub-agent-event" }): void {
    const call = this.#tools.get(callId);
    let run = this.#within.get(callId);
    if (run === undefined) {
      const names = { ...this.#names, agentName: call?.toolName };
      run = new RunTrace(this.#sink, this.#now, this.#ids, call?.spanId ?? this.#own.spanId, names);
      this.#within.set(callId, run);
    }
    run.take(event);
    if (event.type === "run-end") this.#within.delete(callId);
  }

  #endTool(event: AgentEvent & { readonly type: "tool-result" }): void {
    const { callId, toolName, output, isError } = event;
    const call = this.#tools.get(callId) ?? { ...this.#open(), toolName, input: undefined };
    this.#tools.delete(callId);
    const message = typeof output === "string" && this.#names.content ? output : `the call of ${toolName} failed`;
    this.#give(
      `execute_tool ${toolName}`,
      "internal",
      call,
      this.#now(),
      isError ? { type: "tool_error", message } : undefined,
      {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": toolName,
        "gen_ai.tool.call.id": callId,
        "gen_ai.tool.type": "function",
        ...(this.#names.content && {
          "gen_ai.tool.call.arguments": JSON.stringify(call.input ?? null),
          "gen_ai.tool.call.result": JSON.stringify(output ?? null),
        }),
      },
    );
  }

  #endChat(message: AssistantMessage): void {
    const chat = this.#chat;
    if (chat === undefined) return;
    this.#chat = undefined;
    const { model, stopReason } = message;
    this.#give(`chat ${model?.id ?? ""}`.trim(), "client", chat, chat.endTime ?? this.#now(), undefined, {
      "gen_ai.operation.name": "chat",
      ...(model !== undefined && {
        "gen_ai.provider.name": PROVIDERS[model.provider] ?? model.provider,
        "gen_ai.request.model": model.id,
      }),
      ...(stopReason !== undefined && { "gen_ai.response.finish_reasons": [stopReason] }),
      ...usageOf(message.usage ?? {}),
      ...(this.#names.content && { "gen_ai.output.messages": messages([message]) }),
    });
  }

  #failChat({ kind, message }: { readonly kind: string; readonly message: string }): void {
    const chat = this.#chat;
    if (chat === undefined) return;
    this.#chat = undefined;
    const text = this.#names.content ? message : "the model call failed";
    const attributes = { "gen_ai.operation.name": "chat" };
    this.#give("chat", "client", chat, this.#now(), { type: kind, message: text }, attributes);
  }

  #end(event: AgentEvent & { readonly type: "run-end" }): void {
    const { stopReason, usage, error, message, text } = event;
    if (message !== undefined && error === undefined) this.#endChat(message);
    else this.#failChat(error ?? { kind: stopReason, message: `the model call ended with ${stopReason}` });
    const { agentName, conversationId, content } = this.#names;
    const name = agentName === undefined ? "invoke_agent" : `invoke_agent ${agentName}`;
    const failure = error && {
      type: error.kind,
      message: content ? error.message : `the run ended with ${error.kind}`,
    };
    const reasons: readonly StopReason[] = [stopReason];
    this.#give(name, "internal", this.#own, this.#now(), failure, {
      "gen_ai.operation.name": "invoke_agent",
      ...(agentName !== undefined && { "gen_ai.agent.name": agentName }),
      ...(conversationId !== undefined && { "gen_ai.conversation.id": conversationId }),
      "gen_ai.response.finish_reasons": reasons,
      ...usageOf(usage),
      ...(content && {
        "gen_ai.input.messages": messages(this.#prompts),
        "gen_ai.output.messages": messages([{ role: "assistant", content: [{ type: "text", text }] }]),
      }),
    });
  }

  #open(): Open {
    return { spanId: this.#ids.next(), startTime: this.#now() };
  }

  #give(
    name: string,
    kind: Span["kind"],
    { spanId, startTime }: Open,
    endTime: number,
    error: Span["error"] | undefined,
    attributes: Record<string, SpanAttribute>,
  ): void {
    const parentSpanId = spanId === this.#own.spanId ? this.#parent : this.#own.spanId;
    this.#sink({
      name,
      kind,
      traceId: this.#ids.traceId,
      spanId,
      ...(parentSpanId !== undefined && { parentSpanId }),
      // A wait may have been cut short, and a clock set back.
      startTime: Math.min(startTime, endTime),
      endTime,
      attributes: error === undefined ? attributes : { ...attributes, "error.type": error.type },
      ...(error !== undefined && { error }),
    });
  }
}

/** The ids of a run's trace. They follow from its id and the time, so that a run that is resumed has one trace and new spans. */
class Ids {
  readonly traceId: string;
  readonly #seed: bigint;
  #count = 0n;

  constructor(runId: string, now: number) {
    const run = /[0-9a-f]{16}$/.exec(runId)?.[0];
    const seed = run === undefined ? hash(runId) : BigInt(`0x${run}`);
    this.traceId = hex(mixed(seed, 1n)) + hex(mixed(seed, 2n));
    this.#seed = mixed(seed, BigInt(Math.max(0, Math.floor(now))) + 3n);
  }

  next(): string {
    this.#count += 1n;
    return hex(mixed(this.#seed, this.#count));
  }
}

function hash(text: string): bigint {
  let value = 0xcbf29ce484222325n;
  for (const letter of text) value = BigInt.asUintN(64, (value ^ BigInt(letter.codePointAt(0) ?? 0)) * 0x100000001b3n);
  return value;
}

/** SplitMix64. */
function mixed(seed: bigint, counter: bigint): bigint {
  let value = BigInt.asUintN(64, seed + counter * 0x9e3779b97f4a7c15n);
  value = BigInt.asUintN(64, (value ^ (value >> 30n)) * 0xbf58476d1ce4e5b9n);
  value = BigInt.asUintN(64, (value ^ (value >> 27n)) * 0x94d049bb133111ebn);
  return value ^ (value >> 31n);
}

/** No id of OpenTelemetry is zero. */
function hex(value: bigint): string {
  return (value === 0n ? 1n : value).toString(16).padStart(16, "0");
}

/** The conventions' own names of providers, where they differ. */
const PROVIDERS: Readonly<Record<string, string>> = {
  azure: "azure.ai.openai",
  bedrock: "aws.bedrock",
  gemini: "gcp.gemini",
  mistral: "mistral_ai",
  vertex: "gcp.vertex_ai",
  xai: "x_ai",
};

function usageOf(usage: Usage): Record<string, number> {
  const named = {
    "gen_ai.usage.input_tokens": usage.inputTokens,
    "gen_ai.usage.output_tokens": usage.outputTokens,
    "gen_ai.usage.cache_read.input_tokens": usage.cacheReadTokens,
    "gen_ai.usage.cache_creation.input_tokens": usage.cacheWriteTokens,
    "gen_ai.usage.reasoning.output_tokens": usage.reasoningTokens,
    "crablet.usage.cost": usage.cost,
  };
  return Object.fromEntries(Object.entries(named).filter((entry): entry is [string, number] => entry[1] !== undefined));
}

/** Messages in the form of the conventions: `[{ role, parts }]` as JSON. */
function messages(given: readonly Message[]): string {
  return JSON.stringify(
    given.map(({ role, content }) => ({
      role,
      parts: content.map((part) => {
        switch (part.type) {
          case "text":
          case "reasoning":
            return { type: part.type, content: part.text };
          case "tool-call":
            return { type: "tool_call", id: part.callId, name: part.toolName, arguments: part.input ?? part.inputText };
          default:
            return { type: part.type };
        }
      }),
    })),
  );
}
