import { CrabletError } from "./error.js";
import type { Message, UserMessage } from "./message.js";

/** An entry of a saved conversation, as `snapshot_format.md` of the crate describes it. */
type Entry = { readonly type?: string } & Readonly<Record<string, unknown>>;

/** What a user interface needs of a saved conversation before the module is loaded. */
export interface SavedContents {
  readonly messages: readonly Message[];
  /** Whether a run is not finished. */
  readonly isOpen: boolean;
  readonly queued: QueuedMessages;
}

/** A message that waits to be delivered. */
export interface QueuedMessage {
  /** The id that it has in the queue, and later in the conversation. */
  readonly id: string;
  readonly content: UserMessage["content"];
}

/** The messages that wait, in the order in which they are delivered. */
export interface QueuedMessages {
  readonly steers: readonly QueuedMessage[];
  readonly followUps: readonly QueuedMessage[];
}

/**
 * Reads a saved conversation.
 *
 * @throws CrabletError `invalid-input` when it is damaged.
 */
export function contentsOf(text: string): SavedContents {
  const entries = committed(text);
  const state = entries.at(-1);
  if (state === undefined) throw damaged();
  // Version 1 is one object with everything.
  if (Array.isArray(state.messages)) return { ...opened(state), messages: state.messages as Message[] };
  const byId = new Map<unknown, Entry>();
  for (const entry of entries) if (entry.type === "message") byId.set((entry.message as Message).id, entry);
  const messages: Message[] = [];
  for (let entry = byId.get(state.head); entry !== undefined; entry = byId.get(entry.parent)) {
    messages.push(entry.message as Message);
  }
  return { ...opened(state), messages: messages.reverse() };
}

function opened({ run, steers, followUps }: Entry): Omit<SavedContents, "messages"> {
  const queued = { steers: steers ?? [], followUps: followUps ?? [] } as QueuedMessages;
  return { isOpen: run !== undefined && run !== null, queued };
}

/** The entries up to the last state; what stands behind it was not saved to its end. */
function committed(text: string): Entry[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const entries: Entry[] = [];
  let count = 0;
  for (const [index, line] of lines.entries()) {
    const entry = parsed(line);
    if (entry === undefined) {
      if (index === lines.length - 1 && count > 0) break;
      throw damaged();
    }
    entries.push(entry);
    if (entry.type === "state" || Array.isArray(entry.messages)) count = entries.length;
  }
  return entries.slice(0, count);
}

/** An entry whose JSON has line feeds of its own is written as a text. */
function parsed(line: string): Entry | undefined {
  try {
    const value: unknown = JSON.parse(line);
    const entry: unknown = typeof value === "string" ? JSON.parse(value) : value;
    return typeof entry === "object" && entry !== null ? (entry as Entry) : undefined;
  } catch {
    return undefined;
  }
}

function damaged(): CrabletError {
  return new CrabletError({
    kind: "invalid-input",
    message: "this saved session is damaged: it is not the JSON Lines of a crablet session",
  });
}
