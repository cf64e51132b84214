import { callersTool } from "../callers-tools.js";
import { CrabletError } from "../error.js";
import type { ModelOptions } from "../model.js";
import type { JsonSchema } from "../schema.js";
import type { ClientTool } from "../tool.js";

type Fields = Readonly<Record<string, any>>;

/** A request of the Chat Completions wire, as far as an agent can be asked for it. */
export interface CompletionRequest {
  readonly model: string;
  readonly messages: readonly unknown[];
  readonly isStreamed: boolean;
  readonly includesUsage: boolean;
  /** The caller's own tools: the caller performs them. */
  readonly tools: Readonly<Record<string, ClientTool>>;
  readonly modelOptions: ModelOptions;
  /** What the answer shall be. */
  readonly output: JsonSchema | undefined;
}

/**
 * Reads a request.
 *
 * @throws CrabletError `invalid-input` for what an agent cannot be asked for.
 */
export function completionRequestOf(value: unknown): CompletionRequest {
  const body = (typeof value === "object" && value !== null ? value : {}) as Fields;
  if (typeof body.model !== "string") throw badRequest("the request names no model");
  if (!Array.isArray(body.messages) || body.messages.length === 0) throw badRequest("the request has no messages");
  if (body.n !== undefined && body.n !== null && body.n !== 1) throw badRequest("n is 1: there is one answer");
  return {
    model: body.model,
    messages: body.messages,
    isStreamed: body.stream === true,
    includesUsage: body.stream_options?.include_usage === true,
    tools: toolsOf(body),
    modelOptions: modelOptionsOf(body),
    output: outputOf(body.response_format),
  };
}

/** @internal */
export function badRequest(message: string): CrabletError {
  return new CrabletError({ kind: "invalid-input", message, status: 400 });
}

function toolsOf({ tools, tool_choice: chosen }: Fields): Record<string, ClientTool> {
  const choice = chosen ?? "auto";
  if (choice === "none" || tools === undefined || tools === null) return {};
  if (choice !== "auto") throw badRequest("tool_choice is auto or none: the agent decides what it calls");
  if (!Array.isArray(tools)) throw badRequest("tools is not a list");
  const entries = tools.map((given: Fields): [string, ClientTool] => {
    const { type, function: declared } = given ?? {};
    if (type !== "function" || typeof declared?.name !== "string")
      throw badRequest("a tool is not a function with a name");
    const { name, description, parameters } = declared;
    return [name, callersTool(name, description, parameters)];
  });
  return Object.fromEntries(entries);
}

function modelOptionsOf(body: Fields): ModelOptions {
  const maxTokens = body.max_completion_tokens ?? body.max_tokens;
  const stop = typeof body.stop === "string" ? [body.stop] : body.stop;
  for (const [name, value] of Object.entries({ temperature: body.temperature, top_p: body.top_p }))
    if (value !== undefined && value !== null && typeof value !== "number") throw badRequest(`${name} is a number`);
  for (const [name, value] of Object.entries({ max_completion_tokens: maxTokens, seed: body.seed }))
    if (value !== undefined && value !== null && !(Number.isSafeInteger(value) && value >= 0))
      throw badRequest(`${name} is a whole number from 0 up`);
  if (stop !== undefined && stop !== null && !(Array.isArray(stop) && stop.every((text) => typeof text === "string")))
    throw badRequest("stop is a text or a list of texts");
  const options = { temperature: body.temperature, topP: body.top_p, seed: body.seed, maxTokens, stop };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined && value !== null));
}

function outputOf(format: Fields | undefined): JsonSchema | undefined {
  if (format === undefined || format === null || format.type === "text") return undefined;
  if (format.type === "json_schema" && typeof format.json_schema?.schema === "object") return format.json_schema.schema;
  throw badRequest(`response_format is text or json_schema with a schema, not ${JSON.stringify(format.type)}`);
}
