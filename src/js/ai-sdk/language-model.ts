import { CrabletError, invalidInput, messageOf } from "../error.js";
import type { StopReason } from "../message.js";
import type { ModelChunk, ModelFunction, ModelRequest } from "../model.js";
import { failureOfStatus, retryAfterOf } from "../status.js";
import { Keepsakes, promptOf } from "./prompt.js";

/** A model of a provider of the AI SDK: its language model specification, version 2, 3 or 4. */
export interface LanguageModel {
  readonly specificationVersion: "v2" | "v3" | "v4" | (string & {});
  readonly provider: string;
  readonly modelId: string;
  /** Answers one prompt with a stream of parts. */
  doStream(options: any): PromiseLike<{ readonly stream: ReadableStream<any> }>;
}

/** Settings of every call, in the words of the AI SDK. */
export interface LanguageModelOptions {
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
  readonly stopSequences?: readonly string[];
  readonly seed?: number;
  /** How much to reason, for version 4. */
  readonly reasoning?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** What only one provider knows, by the name of the provider. */
  readonly providerOptions?: Readonly<Record<string, unknown>>;
}

/**
 * A model of the AI SDK as a model of an agent: `new Agent({ model: fromLanguageModel(openai("gpt-5")) })`. The agent's
 * `modelOptions` do not reach it; give the settings here.
 *
 * What a provider adds to calls and reasoning for itself, such as signatures, is sent back to it as long as this function's result
 * lives; a conversation that is restored elsewhere goes on without. Tools that the provider performs itself are not told. Addresses
 * of files are handed on as they are.
 *
 * @throws CrabletError `invalid-input` when it is no such model, such as the name of one.
 */
export function fromLanguageModel(model: LanguageModel, options: LanguageModelOptions = {}): ModelFunction {
  if (typeof model?.doStream !== "function" || !VERSIONS.has(model.specificationVersion))
    throw invalidInput("this is no language model of the AI SDK of version 2, 3 or 4: give what its provider made");
  const keepsakes = new Keepsakes();
  const answer: ModelFunction = async function* (request, { signal }) {
    const call = { ...options, ...callOf(request, model, keepsakes), abortSignal: signal };
    let parts: ReadableStream<Part>;
    try {
      parts = (await model.doStream(call)).stream;
    } catch (thrown) {
      throw failureOf(thrown, signal);
    }
    yield* read(parts, keepsakes, signal);
  };
  return Object.defineProperty(answer, "name", { value: model.modelId });
}

const VERSIONS: ReadonlySet<string> = new Set(["v2", "v3", "v4"]);

type Part = { readonly type: string } & Readonly<Record<string, any>>;

function callOf(request: ModelRequest, model: LanguageModel, keepsakes: Keepsakes): Record<string, unknown> {
  const { tools, output } = request;
  return {
    prompt: promptOf(request, model.specificationVersion, keepsakes),
    ...(tools.length > 0 && {
      tools: tools.map((tool) => ({ type: "function", ...tool })),
      toolChoice: { type: "auto" },
    }),
    ...(output !== undefined && {
      responseFormat: {
        type: "json",
        schema: output.jsonSchema,
        name: output.name,
        ...(output.description !== undefined && { description: output.description }),
      },
    }),
  };
}

async function* read(
  parts: ReadableStream<Part>,
  keepsakes: Keepsakes,
  signal: AbortSignal,
): AsyncGenerator<ModelChunk, void> {
  const reader = parts.getReader();
  const reasoning = new Map<string, string>();
  try {
    for (;;) {
      const { done, value: part } = await reader.read();
      if (done) break;
      switch (part.type) {
        case "text-delta":
          yield String(part.delta);
          break;
        case "reasoning-delta":
          reasoning.set(part.id, (reasoning.get(part.id) ?? "") + part.delta);
          yield { type: "reasoning-delta", delta: String(part.delta) };
          break;
        case "reasoning-end":
          keepsakes.keep("reasoning", reasoning.get(part.id) ?? "", part.providerMetadata);
          break;
        case "tool-call":
          if (part.providerExecuted === true) break;
          keepsakes.keep("call", part.toolCallId, part.providerMetadata);
          yield { type: "tool-call", callId: part.toolCallId, toolName: part.toolName, inputText: String(part.input) };
          break;
        case "error":
          throw part.error;
        case "finish":
          yield usageOf(part.usage ?? {});
          yield { type: "stop", reason: stopReasonOf(part.finishReason?.unified ?? part.finishReason) };
          return;
        default:
      }
    }
  } catch (thrown) {
    throw failureOf(thrown, signal);
  } finally {
    await reader.cancel().catch(() => {});
  }
  throw truncated();
}

/** Version 2 has flat numbers, later ones have each number in parts. */
function usageOf({ inputTokens: read, outputTokens: written, ...flat }: Record<string, any>): ModelChunk {
  const counts = {
    inputTokens: read?.total ?? read,
    outputTokens: written?.total ?? written,
    cacheReadTokens: read?.cacheRead ?? flat.cachedInputTokens,
    cacheWriteTokens: read?.cacheWrite,
    reasoningTokens: written?.reasoning ?? flat.reasoningTokens,
  };
  const known = Object.entries(counts).filter(([, count]) => typeof count === "number");
  return { type: "usage", ...Object.fromEntries(known) };
}

function stopReasonOf(reason: unknown): StopReason {
  switch (reason) {
    case "length":
    case "content-filter":
      return reason;
    case "tool-calls":
      return "tool-use";
    case "error":
      throw new CrabletError({ kind: "server", message: "the model stopped because of an error", retryable: true });
    case "interrupted":
      throw truncated();
    default:
      return "stop";
  }
}

function truncated(): CrabletError {
  const message = "the answer of the model ended before its end";
  return new CrabletError({ kind: "stream-truncated", message, retryable: true });
}

/** What a provider threw, by the status that the AI SDK's `APICallError` has. Its body and its request stay out of the error. */
function failureOf(thrown: unknown, signal: AbortSignal): unknown {
  if (signal.aborted || CrabletError.is(thrown)) return thrown;
  const { statusCode, responseHeaders } = (thrown ?? {}) as { statusCode?: unknown; responseHeaders?: unknown };
  if (typeof statusCode === "number") {
    const retryAfterMs = retryAfterOf(
      new Headers((responseHeaders ?? {}) as Record<string, string>).get("retry-after"),
    );
    return new CrabletError({
      ...failureOfStatus(statusCode),
      message: messageOf(thrown),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    });
  }
  // The platform's own fetch says so when there is no connection.
  if (thrown instanceof TypeError)
    return new CrabletError({ kind: "network", message: thrown.message, retryable: true });
  return thrown;
}
