import { CrabletError } from "../error.js";
import { readJson } from "../http-body.js";
import type { FilePart, Input, TextPart } from "../message.js";

/** What a client of the AI SDK posts: nothing in it is to be trusted. */
export interface ChatPost {
  /** The id of the chat, which the client chose. */
  readonly id: string;
  readonly messages: readonly PostedMessage[];
  /** `regenerate-message` asks for another answer to the last message. */
  readonly trigger?: string;
  /** The message that was edited, or whose answer is asked for again. */
  readonly messageId?: string;
}

/** A message as it was posted. */
export interface PostedMessage {
  readonly id: string;
  readonly role: string;
  readonly parts: readonly PostedPart[];
}

/** A part as it was posted. */
export type PostedPart = { readonly type: string } & Readonly<Record<string, unknown>>;

/** The most bytes of a post. The client sends the whole conversation with every message, with its files. */
export const MAX_POST_BYTES = 32 * 1024 * 1024;

/**
 * Reads what a client of the AI SDK posted.
 *
 * @throws CrabletError `invalid-input`, with the status to answer with, when it is none or too big.
 */
export async function readChatPost(request: Request, options: { readonly maxBytes?: number } = {}): Promise<ChatPost> {
  return chatPostOf(await readJson(request, options.maxBytes ?? MAX_POST_BYTES));
}

/** @internal */
export function chatPostOf(value: unknown): ChatPost {
  const { id, messages, trigger, messageId } = objectOf(value);
  if (typeof id !== "string" || id === "" || id.length > MAX_ID) throw refusal(400, "the request has no chat id");
  if (!Array.isArray(messages) || messages.length === 0) throw refusal(400, "the request has no messages");
  return {
    id,
    messages: messages.map(messageOf),
    ...(typeof trigger === "string" && { trigger }),
    ...(typeof messageId === "string" && { messageId }),
  };
}

/** Characters of an id that a client chose. */
const MAX_ID = 256;

function messageOf(value: unknown): PostedMessage {
  const { id, role, parts } = objectOf(value);
  if (typeof id !== "string" || typeof role !== "string" || !Array.isArray(parts))
    throw refusal(400, "a message of the request is not one of the AI SDK");
  return { id, role, parts: parts.filter((part) => typeof objectOf(part).type === "string") };
}

/**
 * The prompt that a posted user message is.
 *
 * @internal
 */
export function promptOf({ parts }: PostedMessage): Input {
  const content = parts.flatMap((part): (TextPart | FilePart)[] => {
    if (part.type === "text" && typeof part.text === "string") return [{ type: "text", text: part.text }];
    return part.type === "file" ? [fileOf(part)] : [];
  });
  if (content.length === 0) throw refusal(400, "the message is empty");
  return content;
}

function fileOf({ url, mediaType, filename }: PostedPart): FilePart {
  if (typeof url !== "string" || typeof mediaType !== "string") throw refusal(400, "a file of the message has no url");
  const kind = /^(image|audio)\//.exec(mediaType)?.[1];
  const type = kind === "image" || kind === "audio" ? kind : "file";
  const name = typeof filename === "string" ? { name: filename } : {};
  const data = /^data:[^,]*;base64,([A-Za-z0-9+/=]*)$/.exec(url)?.[1];
  if (data !== undefined) return { type, mediaType, data, ...name };
  // The provider fetches it, or the model is told of it: no other scheme means anything there.
  if (!/^https?:\/\//i.test(url))
    throw refusal(400, "a file of the message is neither a data: nor an http(s): address");
  return { type, mediaType, url, ...name };
}

/** @internal */
export function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

/** @internal Why a request is not answered. */
export function refusal(status: number, message: string): CrabletError {
  return new CrabletError({ kind: status === 409 ? "conflict" : "invalid-input", message, status });
}
