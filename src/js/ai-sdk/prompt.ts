import type { AssistantMessage, FilePart, Message, TextPart, ToolResultPart } from "../message.js";
import type { ModelRequest } from "../model.js";

/** The most things of a provider that are kept for it: some hundred steps of a conversation. */
const MAX_KEEPSAKES = 2048;

/**
 * What a provider wants back with its calls and its reasoning, which the conversation has no place for.
 *
 * @internal
 */
export class Keepsakes {
  readonly #kept = new Map<string, unknown>();

  keep(kind: "call" | "reasoning", name: string, metadata: unknown): void {
    if (metadata === undefined) return;
    this.#kept.set(`${kind} ${name}`, metadata);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MAX_KEEPSAKES) break;
      this.#kept.delete(oldest);
    }
  }

  /** As the part of a prompt that it goes back with. */
  of(kind: "call" | "reasoning", name: string): { readonly providerOptions?: unknown } {
    const metadata = this.#kept.get(`${kind} ${name}`);
    return metadata === undefined ? {} : { providerOptions: metadata };
  }
}

/** @internal The conversation as a prompt of the AI SDK. */
export function promptOf({ instructions, messages }: ModelRequest, version: string, keepsakes: Keepsakes): unknown[] {
  const system = instructions === undefined ? [] : [{ role: "system", content: instructions }];
  return [...system, ...messages.map((message) => messageOf(message, version, keepsakes))];
}

function messageOf(message: Message, version: string, keepsakes: Keepsakes): unknown {
  switch (message.role) {
    case "user":
      return { role: "user", content: message.content.map((part) => contentOf(part, version)) };
    case "assistant":
      return { role: "assistant", content: message.content.flatMap((part) => partOf(part, version, keepsakes)) };
    case "tool":
      return { role: "tool", content: message.content.map((result) => resultOf(result, version)) };
  }
}

function partOf(part: AssistantMessage["content"][number], version: string, keepsakes: Keepsakes): unknown[] {
  switch (part.type) {
    case "text":
      return [contentOf(part, version)];
    case "reasoning":
      return [{ type: "reasoning", text: part.text, ...keepsakes.of("reasoning", part.text) }];
    case "tool-call": {
      const { callId: toolCallId, toolName, input, inputText } = part;
      return [
        {
          type: "tool-call",
          toolCallId,
          toolName,
          input: input ?? inputText ?? {},
          ...keepsakes.of("call", toolCallId),
        },
      ];
    }
    case "source":
    case "provider":
      return [];
    default:
      return [contentOf(part, version)];
  }
}

function contentOf(part: TextPart | FilePart, version: string): unknown {
  if (part.type === "text") return { type: "text", text: part.text };
  const { mediaType, name } = part;
  return { type: "file", mediaType, data: dataOf(part, version), ...(name !== undefined && { filename: name }) };
}

/** Before version 4 bytes are text and addresses are addresses; since then both say what they are. */
function dataOf({ url, data = "" }: FilePart, version: string): unknown {
  if (version !== "v4") return url === undefined ? data : new URL(url);
  return url === undefined ? { type: "data", data } : { type: "url", url: new URL(url), originalUrl: url };
}

function resultOf({ callId: toolCallId, toolName, content, isError }: ToolResultPart, version: string): unknown {
  const text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
  const hasFiles = content.some(({ type }) => type !== "text");
  const output = isError
    ? { type: "error-text", value: text }
    : hasFiles
      ? { type: "content", value: content.map((part) => resultContentOf(part, version)) }
      : { type: "text", value: text };
  return { type: "tool-result", toolCallId, toolName, output };
}

/** Each version has its own form of a file in a result. */
function resultContentOf(part: TextPart | FilePart, version: string): unknown {
  if (part.type === "text" || version === "v4") return contentOf(part, version);
  const { mediaType, url, data = "" } = part;
  if (version === "v2") return url === undefined ? { type: "media", data, mediaType } : { type: "text", text: url };
  return url === undefined ? { type: "file-data", data, mediaType } : { type: "file-url", url };
}
