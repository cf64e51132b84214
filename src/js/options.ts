import type { AgentEvent } from "./event.js";
import type { Hooks } from "./hooks.js";
import type { McpServer } from "./mcp.js";
import type { Model, ModelFunction, ModelOptions } from "./model.js";
import type { Approve } from "./run.js";
import type { Schema } from "./schema.js";
import type { Skill } from "./skill.js";
import type { ToolSet } from "./tool.js";

/** What an agent is made of. */
export interface AgentOptions<T extends ToolSet = ToolSet> extends Hooks<T>, Limits {
  /** The model that answers. */
  readonly model: Model | ModelFunction;
  /**
   * Models that answer, in this order, when the one before has failed for good: overloaded or unreachable after all attempts,
   * over a rate limit for too long, without credit. A run stays with the model that answers; `step-retry` and the messages
   * say which it is.
   */
  readonly fallbackModels?: readonly (Model | ModelFunction)[];
  /** The system prompt. */
  readonly instructions?: string;
  /** The agent's own tools, by name. */
  readonly tools?: T;
  /** MCP servers whose tools the agent has too. They are connected before the first run. */
  readonly mcpServers?: Readonly<Record<string, McpServer>>;
  /**
   * Texts that say how something is done: the model is told their names and descriptions, and reads one when it needs it, with
   * a tool named `readSkill`.
   */
  readonly skills?: readonly Skill[];
  /**
   * Whether the model finds tools when it needs them instead of being told of all at once, those of MCP servers included: it
   * is told of one tool, which lists others by a query, page by page; those that were listed may be called from then on.
   * `true`: that tool is named `listTools` and gives 20 tools a page. Default: false.
   */
  readonly discovery?: boolean | { readonly toolName?: string; readonly pageSize?: number };
  /** Settings of every model request. */
  readonly modelOptions?: ModelOptions;
  /**
   * How a history that has become too long is sent in a shorter form; what is kept stays whole. Default: when the provider
   * says that the input is too long. With `thresholdTokens`, before each call that would read more. `false`: never. What is left
   * out is said in short: `by` a line for each message, the default, or by the model in a call of its own.
   */
  readonly compaction?:
    | { readonly thresholdTokens?: number; readonly keepTokens?: number; readonly by?: "lines" | "model" }
    | false;
  /**
   * How failed model calls are tried again. Default: 4 attempts in all, 1000 ms before the second, doubled for each further up
   * to 60 000 ms. A provider that asks for a longer wait than `maxDelayMs` ends the run.
   */
  readonly retry?:
    | { readonly maxAttempts?: number; readonly baseDelayMs?: number; readonly maxDelayMs?: number }
    | false;
  /** Decides about tools that need an approval. Without it, the run waits until `approve` of the run or session is called. */
  readonly approve?: Approve<T>;
  /**
   * Shown each event of each run, before the run's reader is. It only looks: nobody waits for it, and what it throws goes to
   * `console.error` and nowhere else.
   */
  readonly onEvent?: (event: AgentEvent<T>) => unknown;
}

/**
 * What keeps a run within bounds: whole numbers from 0 up, but for `maxCost`. Anything else, `NaN` and `Infinity` too, is an error of
 * kind `invalid-input` when a run begins; leave out what shall have no limit.
 */
export interface Limits {
  /** The most model calls of one run. Default 20. */
  readonly maxSteps?: number;
  /** The most tokens of one run, read and written together, sub-agents included; looked at between steps. Default: no limit. */
  readonly maxTokens?: number;
  /**
   * The most that one run may cost, in US dollars; looked at between steps. The model needs `prices` then, unless it is
   * one of OpenRouter or a function that says the `cost` in its `usage`. Default: no limit.
   */
  readonly maxCost?: number;
  /** The most milliseconds of one run. Default: no limit. */
  readonly timeoutMs?: number;
  /** The most milliseconds until the first byte of a model's answer. Default 120 000. */
  readonly firstByteTimeoutMs?: number;
  /** The most milliseconds between two chunks of a model's answer. Default 120 000. */
  readonly idleTimeoutMs?: number;
  /** The most milliseconds that a hook or a validator may take. Default: no limit. */
  readonly hookTimeoutMs?: number;
  /** The most milliseconds that an approval may take; then the call is denied. Default: no limit. */
  readonly approvalTimeoutMs?: number;
  /** The most tools at work at once. Default 8. */
  readonly maxConcurrentTools?: number;
  /**
   * After how many steps in a row with the same calls and the same results the model is told so; one more ends the run.
   * Default 3; 0: never.
   */
  readonly maxIdenticalSteps?: number;
  /**
   * The most characters of a tool's result that the model reads: of a longer one it reads the beginning and the end, and the
   * whole stays in the `output` of the result. Default 400 000; `false`: no limit.
   */
  readonly maxResultCharacters?: number | false;
  /** Whether the model is told of a tool, `readResult`, with which it reads what was left out of such a result. Default: false. */
  readonly resultReader?: boolean;
  /** Whether `terminate` ends the run when every call of a step asks for it (`all`, the default) or when one does (`any`). */
  readonly terminate?: "all" | "any";
}

/** Options of one run. */
export interface RunOptions<S extends Schema | undefined = Schema | undefined> {
  /**
   * What the run shall end with: a JSON Schema, or a Standard Schema such as zod, valibot or arktype make. The answer is
   * checked, asked for once more when it does not fit, and is the `output` of the result. A run that cannot give it fails.
   * A run that is resumed must be given the same again.
   */
  readonly output?: S;
  /** Aborts the run. */
  readonly signal?: AbortSignal;
  /** Another model for this run. */
  readonly model?: Model | ModelFunction;
  /** Another limit for this run. */
  readonly maxSteps?: number;
}
