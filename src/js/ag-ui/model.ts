import { CrabletError } from "../error.js";
import { readHeaders } from "../headers.js";
import type { FilePart, Message, TextPart } from "../message.js";
import type { ModelChunk, ModelFunction, ModelRequest } from "../model.js";
import { failureOfStatus, retryAfterOf } from "../status.js";
import { readAgUiEvents } from "./read.js";

/** How a remote agent of AG-UI is reached. */
export interface AgUiModelOptions {
  readonly url: string | URL;
  readonly headers?: HeadersInit;
  /** What to use in place of the platform's `fetch`. */
  readonly fetch?: typeof fetch;
  /** The thread of the remote agent. Default: another one for each request, since each has the whole conversation. */
  readonly threadId?: string;
  readonly forwardedProps?: unknown;
}

/**
 * A remote agent that speaks AG-UI as the model of an agent here, whose tools are offered to it as the client's. Calls that it performs itself
 * are its own business and not told; what it leaves open is called here. A remote agent that interrupts its run to ask is an error of
 * kind `protocol`: a model cannot be answered.
 */
export function agUiModel(options: AgUiModelOptions): ModelFunction {
  async function* agUi(
    request: ModelRequest,
    { signal }: { readonly signal: AbortSignal },
  ): AsyncGenerator<ModelChunk, void> {
    const headers = readHeaders(options.headers);
    headers.set("content-type", "application/json");
    headers.set("accept", "text/event-stream");
    // Called without the options as `this`, which the platform's own refuses.
    const { fetch = globalThis.fetch } = options;
    const response = await fetch(options.url, {
      method: "POST",
      headers,
      body: JSON.stringify(inputOf(request, options)),
      signal,
    }).catch((thrown: unknown) => {
      if (signal.aborted) throw thrown;
      throw new CrabletError(
        { kind: "network", message: "the remote agent cannot be reached", retryable: true },
        { cause: thrown },
      );
    });
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      const retryAfterMs = retryAfterOf(response.headers.get("retry-after"));
      throw new CrabletError({
        ...failureOfStatus(response.status),
        message: `the remote agent answered with status ${response.status}`,
        ...(retryAfterMs !== undefined && { retryAfterMs }),
      });
    }
    yield* chunksOf(response.body, signal);
  }
  return agUi;
}

async function* chunksOf(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<ModelChunk, void> {
  const calls = new Map<string, { readonly toolName: string; inputText: string }>();
  for await (const event of readAgUiEvents(body, { signal })) {
    const id = String(event.toolCallId ?? "");
    switch (event.type) {
      case "TEXT_MESSAGE_CONTENT":
      case "TEXT_MESSAGE_CHUNK":
        if (typeof event.delta === "string") yield event.delta;
        break;
      case "REASONING_MESSAGE_CONTENT":
      case "REASONING_MESSAGE_CHUNK":
        if (typeof event.delta === "string") yield { type: "reasoning-delta", delta: event.delta };
        break;
      case "TOOL_CALL_START":
        calls.set(id, { toolName: String(event.toolCallName), inputText: "" });
        break;
      case "TOOL_CALL_CHUNK":
        if (!calls.has(id)) calls.set(id, { toolName: String(event.toolCallName), inputText: "" });
        append(calls.get(id), event.delta);
        break;
      case "TOOL_CALL_ARGS":
        append(calls.get(id), event.delta);
        break;
      case "TOOL_CALL_RESULT":
        calls.delete(id);
        break;
      case "RUN_ERROR":
        throw new CrabletError({
          kind: "server",
          message: `the remote agent failed: ${String(event.message)}`,
          retryable: false,
        });
      case "RUN_FINISHED": {
        const { outcome, usage } = event;
        if (outcome?.type === "interrupt")
          throw new CrabletError({
            kind: "protocol",
            message: "the remote agent interrupts its run to ask something, and a model cannot be answered",
          });
        for (const [callId, { toolName, inputText }] of calls)
          yield { type: "tool-call", callId, toolName, inputText: inputText === "" ? "{}" : inputText };
        yield usageOf(usage);
        return;
      }
      default:
    }
  }
}

function append(call: { inputText: string } | undefined, delta: unknown): void {
  if (call !== undefined && typeof delta === "string") call.inputText += delta;
}

/** What the remote agent counted, of all its models together. */
function usageOf(usage: unknown): ModelChunk {
  const counts: Record<string, number> = {};
  const names = [
    ["inputTokens", "inputTokens"],
    ["outputTokens", "outputTokens"],
    ["reasoningTokens", "reasoningTokens"],
    ["cacheReadTokens", "cachedInputTokens"],
    ["cacheWriteTokens", "cacheWriteInputTokens"],
  ] as const;
  for (const entry of Array.isArray(usage) ? usage : []) {
    for (const [own, theirs] of names) {
      const count: unknown = entry?.[theirs];
      if (typeof count === "number") counts[own] = (counts[own] ?? 0) + count;
    }
  }
  return { type: "usage", ...counts };
}

function inputOf(
  { instructions, messages, tools }: ModelRequest,
  { threadId, forwardedProps }: AgUiModelOptions,
): unknown {
  const system = instructions === undefined ? [] : [{ id: "instructions", role: "system", content: instructions }];
  return {
    threadId: threadId ?? crypto.randomUUID(),
    runId: crypto.randomUUID(),
    state: {},
    messages: [...system, ...messages.flatMap(messagesOf)],
    tools: tools.map(({ name, description, inputSchema }) => ({ name, description, parameters: inputSchema })),
    context: [],
    forwardedProps: forwardedProps ?? {},
  };
}

function messagesOf(message: Message, index: number): unknown[] {
  const id = message.id ?? `message_${index}`;
  switch (message.role) {
    case "user":
      return [{ id, role: "user", content: partsOf(message.content) }];
    case "tool":
      return message.content.map(({ callId, content, isError }) => {
        const text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
        return {
          id: `result_${callId}`,
          role: "tool",
          toolCallId: callId,
          content: text,
          ...(isError && { error: text }),
        };
      });
    case "assistant": {
      const text = message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
      const toolCalls = message.content.flatMap((part) =>
        part.type === "tool-call"
          ? [
              {
                id: part.callId,
                type: "function",
                function: { name: part.toolName, arguments: part.inputText ?? JSON.stringify(part.input ?? {}) },
              },
            ]
          : [],
      );
      return [
        { id, role: "assistant", ...(text !== "" && { content: text }), ...(toolCalls.length > 0 && { toolCalls }) },
      ];
    }
  }
}

/** Text alone is text: older servers know nothing else. */
function partsOf(content: readonly (TextPart | FilePart)[]): unknown {
  if (content.every(({ type }) => type === "text"))
    return content.map((part) => ("text" in part ? part.text : "")).join("");
  return content.map((part) => {
    if (part.type === "text") return { type: "text", text: part.text };
    const { type, mediaType: mimeType, url, data = "" } = part;
    const source = url === undefined ? { type: "data", value: data, mimeType } : { type: "url", value: url, mimeType };
    return { type: type === "file" ? "document" : type, source };
  });
}
