import { callersTool } from "../callers-tools.js";
import { CrabletError } from "../error.js";
import type { FilePart, Input, TextPart } from "../message.js";
import type { ClientTool } from "../tool.js";
import type { AgUiMessage } from "./events.js";

type Fields = Readonly<Record<string, any>>;

/** What a client of AG-UI asks for: nothing in it is to be trusted. */
export interface AgUiInput {
  readonly threadId: string;
  readonly runId: string;
  readonly messages: readonly AgUiMessage[];
  /** The tools that the client performs. */
  readonly tools: Readonly<Record<string, ClientTool>>;
  /** What was answered to interrupts. */
  readonly resume: readonly { readonly interruptId: string; readonly status: string; readonly payload?: unknown }[];
}

/**
 * Reads what a client of AG-UI posted.
 *
 * @throws CrabletError `invalid-input` with the status 400.
 */
export function agUiInputOf(value: unknown): AgUiInput {
  const { threadId, runId, messages, tools, resume } = fieldsOf(value);
  if (typeof threadId !== "string" || threadId === "" || threadId.length > MAX_ID || typeof runId !== "string")
    throw refusal(400, "the request has no threadId or runId");
  if (!Array.isArray(messages)) throw refusal(400, "the request has no messages");
  return {
    threadId,
    runId,
    messages: messages.filter((message) => typeof fieldsOf(message).role === "string"),
    tools: Object.fromEntries(listOf(tools).map(toolOf)),
    resume: listOf(resume).map((entry) => {
      const { interruptId, status, payload } = fieldsOf(entry);
      return { interruptId: String(interruptId), status: String(status), payload };
    }),
  };
}

/** Characters of an id that a client chose. */
const MAX_ID = 256;

/** @internal */
export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

/** @internal Why a request is not answered. */
export function refusal(status: number, message: string): CrabletError {
  return new CrabletError({ kind: status === 409 ? "conflict" : "invalid-input", message, status });
}

/** @internal What a message says. */
export function contentOf(content: unknown): Input & readonly unknown[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return listOf(content).map((part): TextPart | FilePart => {
    const { type, text, source } = fieldsOf(part);
    if (type === "text" && typeof text === "string") return { type: "text", text };
    const { type: from, value, mimeType } = fieldsOf(source);
    const kind = type === "image" || type === "audio" ? type : "file";
    const mediaType = String(mimeType ?? "application/octet-stream");
    if (from === "data" && typeof value === "string") return { type: kind, mediaType, data: value };
    if (from === "url" && /^https?:\/\//i.test(String(value))) return { type: kind, mediaType, url: String(value) };
    throw refusal(400, "a part of the message is neither text, nor data, nor an http(s): address");
  });
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function toolOf(value: unknown): [string, ClientTool] {
  const { name, description, parameters } = fieldsOf(value);
  if (typeof name !== "string" || name === "") throw refusal(400, "a tool of the request has no name");
  return [name, callersTool(name, description, parameters)];
}
