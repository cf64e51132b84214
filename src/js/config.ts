import { invalidInput } from "./error.js";
import { readHeaders } from "./headers.js";
import type { Model, ModelFunction } from "./model.js";
import type { AgentOptions, Limits } from "./options.js";
import { withSkills } from "./skill.js";
import { TOOL_SETTINGS, type ToolSet } from "./tool.js";

/** @internal The definition of an agent, as `src/bindings/src/config.rs` reads it. */
export function configOf(given: AgentOptions<ToolSet>, models: Models): Record<string, unknown> {
  const options = withSkills(given);
  const { retry, discovery } = options;
  const tools = Object.entries(options.tools ?? {});
  return {
    names: Object.keys(options),
    models: models.configs,
    instructions: options.instructions,
    tools: tools.map(([name, tool]) => toolConfig(name, tool)),
    discovery: discovery === true ? {} : discovery || undefined,
    options: options.modelOptions ?? {},
    policy: {
      ...Object.fromEntries(LIMITS.map((name) => [name, options[name]])),
      ...(retry === false
        ? { maxAttempts: 1 }
        : { maxAttempts: retry?.maxAttempts, retryBaseMs: retry?.baseDelayMs, retryCapMs: retry?.maxDelayMs }),
    },
    hooks: {
      prepareStep: options.prepareStep !== undefined,
      prepareContext: options.prepareContext !== undefined,
      formatRequest: options.formatRequest !== undefined,
      beforeToolCall:
        options.beforeToolCall !== undefined || tools.some(([, tool]) => typeof tool.needsApproval === "function"),
      afterToolCall: options.afterToolCall !== undefined,
      stopWhen: options.stopWhen !== undefined,
    },
  };
}

/** What the policy of the module calls by the same name. */
const LIMITS = [
  "maxSteps",
  "maxTokens",
  "maxCost",
  "compaction",
  "timeoutMs",
  "firstByteTimeoutMs",
  "idleTimeoutMs",
  "hookTimeoutMs",
  "approvalTimeoutMs",
  "maxConcurrentTools",
  "maxIdenticalSteps",
  "maxResultCharacters",
  "resultReader",
  "terminate",
] as const satisfies readonly (keyof Limits | "compaction")[];

/** @internal Numbers that JSON does not have, as text, which the module refuses: as `null` they would be no limit. */
export function withNumbers(_name: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}

/** @internal The models of an agent by their numbers: its own, those that answer when it fails, and those that hooks choose. */
export class Models {
  readonly #known: (Model | ModelFunction)[];
  /** The one `fetch` of the models. */
  readonly fetch: typeof fetch | undefined;

  constructor({ model, fallbackModels = [] }: AgentOptions<ToolSet>) {
    this.#known = [model, ...fallbackModels];
    this.fetch = this.#known.find((known) => typeof known !== "function")?.settings?.().options.fetch;
  }

  /** The models that the agent has from the beginning. */
  get configs(): readonly Record<string, unknown>[] {
    return this.#known.map((model) => this.config(model));
  }

  /** A model as `src/bindings/src/config.rs` reads it. From then on the module may ask for its keys, or call it. */
  config(model: Model | ModelFunction): Record<string, unknown> {
    const known = this.#known.indexOf(model);
    const number = known < 0 ? this.#known.push(model) - 1 : known;
    if (typeof model === "function")
      return { number, wire: "function", provider: "function", id: model.name || "function" };
    if (model?.settings === undefined)
      throw invalidInput('this is no model: use one such as anthropic("claude-…", { apiKey })');
    const { wire, options, credentials } = model.settings();
    // Another would get the key of this one, or not sign its requests.
    if (options.fetch !== this.fetch) throw invalidInput("the models of an agent must have the same fetch");
    return {
      number,
      wire,
      provider: model.provider,
      id: model.id,
      baseUrl: options.baseUrl === undefined ? undefined : String(options.baseUrl).replace(/\/+$/, ""),
      headers: [...readHeaders(options.headers)],
      accepts: options.accepts,
      key: typeof credentials === "string" ? credentials : undefined,
      prices: options.prices,
      asksForCredentials: typeof credentials === "function",
    };
  }

  /** The model of this number. */
  at(number: number): Model | ModelFunction | undefined {
    return this.#known[number];
  }
}

function toolConfig(name: string, tool: ToolSet[string]): Record<string, unknown> {
  if (tool.schema === undefined) throw invalidInput(`the tool "${name}" was not made by tool() or subAgent()`);
  return {
    ...Object.fromEntries(TOOL_SETTINGS.map((setting) => [setting, tool[setting]])),
    name,
    inputSchema: tool.schema.jsonSchema,
    hasValidator: tool.schema.standard !== undefined,
    clientSide: tool.execute === undefined && !("agent" in tool),
  };
}
