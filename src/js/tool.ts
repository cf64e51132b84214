import type { Agent } from "./agent.js";
import { checkOptions, invalidInput, messageOf } from "./error.js";
import type { FilePart, TextPart } from "./message.js";
import { compileSchema, type CompiledSchema, type Infer, type Schema } from "./schema.js";

/** A value, or a promise of one. */
export type MaybePromise<T> = T | PromiseLike<T>;

/** What a running tool knows of its call. */
export interface ToolContext {
  readonly callId: string;
  /** Aborts when the run aborts, the tool's time is up, or the consumer leaves its loop. */
  readonly signal: AbortSignal;
  /**
   * Reports progress: a `tool-progress` event with this data. Does nothing once the call is over.
   *
   * @throws CrabletError `invalid-input` for what cannot be written as JSON.
   */
  progress(data: unknown): void;
}

/** How a tool is written. */
export interface ToolDefinition<S extends Schema = Schema, Output = unknown> {
  /** What the tool does, for the model. */
  readonly description: string;
  /** What it takes: a JSON Schema of an object, or a Standard Schema (zod, valibot, arktype). */
  readonly input: S;
  /**
   * Whether a person is asked first: always, or for the inputs for which this says so. What it throws denies the call, and the
   * model is told. Default: false.
   */
  readonly needsApproval?: boolean | ((input: Infer<S>) => MaybePromise<boolean>);
  /** The most milliseconds it may take: then its signal aborts, and the model is told of a failure. Default: no limit. */
  readonly timeoutMs?: number;
  /** Whether it runs alone, in call order. Default: beside the other calls of its step. */
  readonly sequential?: boolean;
  /** Whether it may run twice for one call, so that a session restored after a crash runs it again. Default: false. */
  readonly repeatable?: boolean;
  /** How many of its calls may be at work at once. Default: as many as the agent's `maxConcurrentTools` allows. */
  readonly maxConcurrent?: number;
  /**
   * Runs the tool. What it returns is told to the model: text as it is, anything else as JSON; use `toolOutput` for files
   * and for data that only the user interface shall see. What it throws, and a value that cannot be written as JSON, is told to
   * the model as a failed result; nothing, as `done`.
   */
  readonly execute: (input: Infer<S>, context: ToolContext) => MaybePromise<Output>;
}

/** How a client-side tool is written: its run waits until `toolResult` of the run or session is called. */
export interface ClientToolDefinition<S extends Schema = Schema> extends Omit<ToolDefinition<S>, "execute"> {
  readonly execute?: undefined;
}

/** What all tools have. */
export interface ToolBase<Input = any> {
  readonly description: string;
  /** Whether a person is asked first: always, or for the inputs for which this says so. */
  readonly needsApproval?: boolean | ((input: Input) => MaybePromise<boolean>);
  readonly timeoutMs?: number;
  readonly sequential?: boolean;
  readonly repeatable?: boolean;
  readonly maxConcurrent?: number;
  /** @internal */
  readonly schema: CompiledSchema;
}

/** A tool, as `tool()` makes it. */
export interface Tool<Input = any, Output = any> extends ToolBase<Input> {
  /** Runs the tool, with an input that was checked. */
  readonly execute: (input: Input, context: ToolContext) => MaybePromise<Output>;
}

/** A tool that the caller's own client performs, as `tool()` makes it without `execute`. */
export interface ClientTool<Input = any> extends ToolBase<Input> {
  readonly execute?: undefined;
}

/** An agent as a tool, as `subAgent()` makes it. */
export interface SubAgentTool<Input = any> extends ToolBase<Input> {
  readonly execute?: undefined;
  /** The agent that works on the calls. */
  readonly agent: Agent<any>;
}

/** Tools by the name the model calls them by. */
export type ToolSet = Readonly<Record<string, Tool | ClientTool | SubAgentTool>>;

/**
 * Makes a tool, and infers the type of its input from the schema.
 *
 * @throws CrabletError `invalid-input` when the schema cannot be told to a model.
 */
export function tool<const S extends Schema, Output>(definition: ToolDefinition<S, Output>): Tool<Infer<S>, Output>;
/** A tool without `execute` is client-side: its run waits until `toolResult` of the run or session is called. */
export function tool<const S extends Schema>(definition: ClientToolDefinition<S>): ClientTool<Infer<S>>;
export function tool(definition: ToolDefinition | ClientToolDefinition): Tool | ClientTool {
  const { input, ...rest } = definition ?? {};
  checkOptions(rest, "a tool", [...TOOL_SETTINGS, "execute"]);
  if (rest.execute !== undefined && typeof rest.execute !== "function")
    throw invalidInput("the execute of a tool is a function; without it the tool is client-side");
  const { jsonSchema, standard } = compileSchema(input, `the tool "${rest.description}"`);
  return { ...rest, schema: { jsonSchema, standard } } as Tool | ClientTool;
}

/** @internal What a tool says of itself beside its schema and what it does. */
export const TOOL_SETTINGS = [
  "description",
  "needsApproval",
  "timeoutMs",
  "sequential",
  "repeatable",
  "maxConcurrent",
] as const;

/** How an agent is written as a tool. */
export interface SubAgentDefinition<S extends Schema = Schema> {
  /** What the agent does, for the model. */
  readonly description: string;
  /** The agent that works on the calls. */
  readonly agent: Agent<any>;
  /**
   * What it takes. Default: `{ prompt: string }`, which is what the agent is asked; with another schema it is given the input as
   * JSON text, unless that has a `prompt` that is text.
   */
  readonly input?: S;
  /** Whether a person is asked first. */
  readonly needsApproval?: boolean | ((input: Infer<S>) => MaybePromise<boolean>);
  /** The most milliseconds it may take. Default: no limit. */
  readonly timeoutMs?: number;
  /** Whether it runs alone, in call order. Default: beside the other calls of its step. */
  readonly sequential?: boolean;
  /** How many of its calls may be at work at once. */
  readonly maxConcurrent?: number;
}

/**
 * Makes an agent a tool of another one. Each call is worked on in a conversation of its own, which is saved, restored and
 * aborted with the run that made the call. What happens in it is told as `sub-agent-event`, its tokens count in the budgets of
 * that run, and its approvals suspend it; they are decided by the `approve` of the agent that runs.
 */
export function subAgent<const S extends Schema = { readonly type: "object" }>(
  definition: SubAgentDefinition<S>,
): SubAgentTool<Infer<S>> {
  const { input, ...rest } = definition ?? {};
  if (typeof rest.agent?.parts !== "function") throw invalidInput("a sub-agent needs an agent: new Agent({ … })");
  const { jsonSchema, standard } = compileSchema(input ?? PROMPT, `the sub-agent "${rest.description}"`);
  return { ...rest, schema: { jsonSchema, standard } };
}

const PROMPT = {
  type: "object",
  properties: {
    prompt: { type: "string", description: "The whole task: nothing else of this conversation is known." },
  },
  required: ["prompt"],
} as const;

/** What a tool gives, in full. */
export interface ToolOutput {
  /** What the model reads. */
  readonly content: string | readonly (TextPart | FilePart)[];
  /** Data for a user interface that the model does not see. Must be JSON. */
  readonly details?: unknown;
  /** Whether the tool failed. Default: false. */
  readonly isError?: boolean;
  /** Whether the run shall end after this step, when every call of the step says so. Default: false. */
  readonly terminate?: boolean;
}

const OUTPUT = Symbol.for("crablet.tool-output");

/** Marks a tool's return value as a full output rather than a value to be told as JSON. */
export function toolOutput(output: ToolOutput): ToolOutput {
  return Object.defineProperty({ ...output }, OUTPUT, { value: true });
}

/** @internal What a tool returned, as the machine takes it. */
export function outputOf(returned: unknown): Record<string, unknown> {
  if (typeof returned === "object" && returned !== null && OUTPUT in returned) {
    const { content, ...rest } = returned as unknown as ToolOutput;
    return { ...rest, content: typeof content === "string" ? [{ type: "text", text: content }] : content };
  }
  if (typeof returned === "string") return { content: [{ type: "text", text: returned }], output: returned };
  if (returned === undefined) return { content: [{ type: "text", text: "done" }] };
  if (returned instanceof Error) return { content: [{ type: "text", text: messageOf(returned) }], isError: true };
  // JSON would say nothing of what is in a Map, a Response or a function, and too much of bytes.
  const kind = Object.prototype.toString.call(returned).slice(8, -1);
  const isJson = PLAIN.test(kind) || (returned as { toJSON?: unknown }).toJSON !== undefined;
  if (!isJson || ArrayBuffer.isView(returned))
    throw invalidInput(`a tool cannot give a ${kind}: return text, plain data or toolOutput()`);
  return { output: returned };
}

const PLAIN = /^(Object|Array|String|Number|Boolean|Null)$/;
