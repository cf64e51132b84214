// What browsers ask for, and what they are answered.
import type { StoredSession } from "crablet/stores";

/** A message of a browser over its WebSocket. */
export type Request =
  | { readonly type: "send"; readonly text: string }
  | { readonly type: "decide"; readonly callId: string; readonly allow: boolean }
  | { readonly type: "stop" }
  /** Takes the conversation back from the browser that has it. */
  | { readonly type: "recall" };

/** What the store of a browser asks for that has a conversation: the functions of `SessionStore`, and a sign of life. */
export type StoreCall =
  | { readonly op: "read" }
  | { readonly op: "renew" }
  | { readonly op: "append" | "replace"; readonly version: number; readonly entries: readonly string[] };

export interface StoreAnswer {
  readonly stored?: StoredSession | undefined;
  readonly version?: number;
  /** The conversation was taken back, or written by somebody else. */
  readonly conflict?: true;
}

/** What a browser is given with a conversation. */
export interface Lent {
  /** Says that it is this browser that has it. */
  readonly ticket: string;
  readonly leaseMs: number;
}

/** The longest message of a browser, in characters. */
const MAX_MESSAGE = 100_000;

export function requestOf(data: string | ArrayBuffer): Request {
  if (typeof data !== "string" || data.length > MAX_MESSAGE)
    throw new Error("a message is text of at most 100 000 characters");
  const { type, text, callId, allow } = JSON.parse(data) as Partial<Record<string, unknown>>;
  if (type === "send" && typeof text === "string") return { type, text };
  if (type === "decide" && typeof callId === "string" && typeof allow === "boolean") return { type, callId, allow };
  if (type === "stop" || type === "recall") return { type };
  throw new Error("this is no request of the chat");
}

export function storeCallOf(given: unknown): StoreCall {
  const { op, version, entries } = given as Partial<Record<string, unknown>>;
  if (op === "read" || op === "renew") return { op };
  const isWrite = (op === "append" || op === "replace") && typeof version === "number" && Array.isArray(entries);
  if (isWrite && entries.every((entry) => typeof entry === "string" && !entry.includes("\n")))
    return { op, version, entries };
  throw new Error("this is no call of a store");
}
