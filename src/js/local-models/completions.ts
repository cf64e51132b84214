import { CrabletError, messageOf } from "../error.js";
import type { FilePart, Message, StopReason, TextPart } from "../message.js";
import type { ModelChunk, ModelFunction, ModelRequest } from "../model.js";
import type { MaybePromise } from "../tool.js";
import { assistantText, resultText } from "./messages.js";
import { structureOf, StructureReader } from "./structured.js";

/** A chunk of a streamed chat completion, as OpenAI, WebLLM and wllama write it. */
export interface CompletionChunk {
  readonly choices: readonly {
    readonly delta?: {
      readonly content?: string | null;
      readonly reasoning_content?: string | null;
      readonly tool_calls?: readonly {
        readonly index?: number;
        readonly id?: string;
        readonly function?: { readonly name?: string; readonly arguments?: string };
      }[];
    };
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: { readonly prompt_tokens?: number; readonly completion_tokens?: number } | null;
}

/** An engine with OpenAI's interface in the page: WebLLM's `MLCEngine` and its relatives in workers. */
export interface CompletionEngine {
  readonly chat: {
    readonly completions: {
      /** Answers a Chat Completions request, with chunks where it asks for a stream. */
      create(request: any): Promise<any>;
    };
  };
  /** Stops the answer that is being written. */
  interruptGenerate?(): MaybePromise<void>;
}

/** A `Wllama` with a model loaded. */
export interface Wllama {
  /** Answers a Chat Completions request, with chunks where it asks for a stream. */
  createChatCompletion(options: any): Promise<any>;
}

/** How an engine is used. */
export interface EngineOptions {
  /**
   * How tools are asked for: `structured` has the model write an object of a schema, which works with every model; `native` uses the
   * engine's own `tools`, for models that were trained for them. Default: `structured` for WebLLM, `native` for wllama.
   */
  readonly tools?: "structured" | "native";
  /** Further members of each request, such as `temperature` or `max_tokens`. */
  readonly request?: Readonly<Record<string, unknown>>;
}

/**
 * A model of WebLLM, or of another engine with OpenAI's interface in the page, as the model of an agent.
 *
 * @param engine the engine with its model loaded, or a function that gives it: then it is loaded by the first request.
 */
export function engineModel(
  engine: CompletionEngine | (() => MaybePromise<CompletionEngine>),
  { tools = "structured", request = {} }: EngineOptions = {},
): ModelFunction {
  const loaded = once(engine);
  return completionsModel(tools, async function* (body, format, signal) {
    const { chat, interruptGenerate } = await loaded();
    const interrupt = async (): Promise<void> => void (await interruptGenerate?.call(await loaded()));
    const abort = (): void => void interrupt().catch(() => {});
    signal.throwIfAborted();
    signal.addEventListener("abort", abort, { once: true });
    try {
      yield* await chat.completions.create({
        ...body,
        // WebLLM takes the schema as text.
        ...(format !== undefined && {
          response_format: { type: "json_object", schema: JSON.stringify(format.schema) },
        }),
        ...request,
      });
    } finally {
      signal.removeEventListener("abort", abort);
    }
  });
}

/**
 * A GGUF model in wllama (llama.cpp in WebAssembly) as the model of an agent.
 *
 * @param wllama one with its model loaded, or a function that gives it: then it is loaded by the first request.
 */
export function wllamaModel(
  wllama: Wllama | (() => MaybePromise<Wllama>),
  { tools = "native", request = {} }: EngineOptions = {},
): ModelFunction {
  const loaded = once(wllama);
  return completionsModel(tools, async function* (body, format, signal) {
    const engine = await loaded();
    yield* await engine.createChatCompletion({
      ...body,
      ...(format !== undefined && { response_format: { type: "json_schema", json_schema: format } }),
      ...request,
      abortSignal: signal,
    });
  });
}

type Format = { readonly name: string; readonly schema: unknown };

type Complete = (
  body: Readonly<Record<string, unknown>>,
  format: Format | undefined,
  signal: AbortSignal,
) => AsyncIterable<CompletionChunk>;

function completionsModel(tools: "structured" | "native", complete: Complete): ModelFunction {
  async function* completions(
    request: ModelRequest,
    { signal }: { readonly signal: AbortSignal },
  ): AsyncGenerator<ModelChunk, void> {
    const isNative = tools === "native" || request.tools.length === 0;
    const structure = structureOf(isNative ? { ...request, tools: [] } : request);
    const body = {
      messages: messagesOf(request, structure?.instructions, isNative),
      stream: true,
      stream_options: { include_usage: true },
      ...(isNative && request.tools.length > 0 && { tools: request.tools.map(toolOf) }),
    };
    const format =
      structure === undefined ? undefined : { name: request.output?.name ?? "answer", schema: structure.schema };
    try {
      yield* read(complete(body, format, signal), isNative ? undefined : new StructureReader(), signal);
    } catch (thrown) {
      if (signal.aborted || CrabletError.is(thrown)) throw thrown;
      throw failureOf(thrown);
    }
  }
  return completions;
}

async function* read(
  chunks: AsyncIterable<CompletionChunk>,
  structure: StructureReader | undefined,
  signal: AbortSignal,
): AsyncGenerator<ModelChunk, void> {
  const calls = new Map<number, { callId?: string; toolName: string; inputText: string }>();
  let reason: StopReason | undefined;
  for await (const { choices, usage } of chunks) {
    signal.throwIfAborted();
    const { delta, finish_reason: finish } = choices[0] ?? {};
    if (delta?.reasoning_content) yield { type: "reasoning-delta", delta: delta.reasoning_content };
    const text = structure === undefined ? (delta?.content ?? "") : structure.push(delta?.content ?? "");
    if (text !== "") yield text;
    for (const { index = calls.size, id, function: called } of delta?.tool_calls ?? []) {
      if (calls.size > MAX_CALLS)
        throw new CrabletError({ kind: "malformed-stream", message: `the answer has more than ${MAX_CALLS} calls` });
      const call = calls.get(index) ?? { toolName: "", inputText: "" };
      calls.set(index, call);
      if (id) call.callId ??= id;
      if (call.toolName === "") call.toolName = called?.name ?? "";
      call.inputText += called?.arguments ?? "";
    }
    if (finish === "length") reason = "length";
    if (usage) yield { type: "usage", ...counts(usage) };
  }
  // An answer that was interrupted ends like one that is whole.
  signal.throwIfAborted();
  if (structure !== undefined) yield* structure.end();
  for (const call of calls.values()) yield { type: "tool-call", ...call, inputText: call.inputText || "{}" };
  if (reason !== undefined) yield { type: "stop", reason };
}

/** The most calls of one answer. */
const MAX_CALLS = 128;

function counts({
  prompt_tokens: inputTokens,
  completion_tokens: outputTokens,
}: NonNullable<CompletionChunk["usage"]>) {
  return { ...(inputTokens !== undefined && { inputTokens }), ...(outputTokens !== undefined && { outputTokens }) };
}

const toolOf = ({ name, description, inputSchema }: ModelRequest["tools"][number]): unknown => ({
  type: "function",
  function: { name, description, parameters: inputSchema },
});

function messagesOf(
  { instructions, messages }: ModelRequest,
  further: string | undefined,
  isNative: boolean,
): unknown[] {
  const system = [instructions, further].filter((text) => text !== undefined).join("\n\n");
  return [
    ...(system === "" ? [] : [{ role: "system", content: system }]),
    ...messages.flatMap((message) => partsOf(message, isNative)),
  ];
}

function partsOf(message: Message, isNative: boolean): unknown[] {
  if (message.role === "user") return [{ role: "user", content: contentOf(message.content) }];
  if (message.role === "assistant") {
    const calls = message.content.filter((part) => part.type === "tool-call");
    if (!isNative || calls.length === 0) return [{ role: "assistant", content: assistantText(message) }];
    const text = message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
    const toolCalls = calls.map(({ callId, toolName, input, inputText }) => ({
      id: callId,
      type: "function",
      function: { name: toolName, arguments: inputText ?? JSON.stringify(input ?? {}) },
    }));
    return [{ role: "assistant", content: text === "" ? null : text, tool_calls: toolCalls }];
  }
  if (!isNative) return [{ role: "user", content: resultText(message) }];
  return message.content.map(({ callId, content }) => ({
    role: "tool",
    tool_call_id: callId,
    content: content.map((part) => (part.type === "text" ? part.text : "(a file)")).join(""),
  }));
}

function contentOf(content: readonly (TextPart | FilePart)[]): unknown {
  if (content.every(({ type }) => type === "text"))
    return content.map((part) => ("text" in part ? part.text : "")).join("\n");
  return content.map((part) => {
    if (part.type === "text") return { type: "text", text: part.text };
    const { type, mediaType, url, data = "", name = "a file" } = part;
    if (type === "image") return { type: "image_url", image_url: { url: url ?? `data:${mediaType};base64,${data}` } };
    if (type === "audio" && url === undefined)
      return { type: "input_audio", input_audio: { data, format: mediaType === "audio/mpeg" ? "mp3" : "wav" } };
    return { type: "text", text: `(${name} cannot be read by this model)` };
  });
}

/** Engines throw sentences: what can be told from them is that the conversation is too long. */
function failureOf(thrown: unknown): CrabletError {
  const message = messageOf(thrown);
  const isTooLong = /context (window|size|length)|exceeds? .*(context|n_ctx)|KV cache is full/i.test(message);
  const kind = isTooLong ? "context-overflow" : "server";
  return new CrabletError({ kind, message: `the model in the page failed: ${message}` }, { cause: thrown });
}

function once<Value extends object>(given: Value | (() => MaybePromise<Value>)): () => Promise<Value> {
  let loading: Promise<Value> | undefined;
  return () => {
    loading ??= Promise.resolve(typeof given === "function" ? (given as () => MaybePromise<Value>)() : given);
    // What could not be loaded may be at the next request.
    loading.catch(() => {
      loading = undefined;
    });
    return loading;
  };
}
