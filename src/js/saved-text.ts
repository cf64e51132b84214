import { CrabletError, invalidInput } from "./error.js";
import type { ToolCall } from "./event.js";
import type { Message, UserMessage } from "./message.js";

/** A message in its place in a session's tree. */
export interface TreeEntry {
  readonly message: Message;
  /** The id of the message it follows; `undefined` for one that begins a conversation. */
  readonly parentId: string | undefined;
  /** The name that `label()` gave this place. */
  readonly label: string | undefined;
}

/** What a user interface needs of a saved conversation before the module is loaded. */
export interface SavedContents {
  readonly messages: readonly Message[];
  /** The calls that wait for an approval, those of sub-agents too. */
  readonly pending: readonly ToolCall[];
  /** The calls that were at work, those of sub-agents too. */
  readonly started: readonly StartedCall[];
  /** Whether a run is not finished. */
  readonly isOpen: boolean;
  /** Whether nothing is left of a run but to show its end. */
  readonly isEnding: boolean;
  readonly queued: QueuedMessages;
  /** The first deadline of a run that is not finished, those of sub-agents too. */
  readonly dueAt: number | undefined;
}

/** A call that was at work, and the tools whose agents lead to it, its own last. */
export interface StartedCall {
  readonly call: ToolCall;
  readonly path: readonly string[];
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

/** An entry of a saved conversation, as `snapshot_format.md` of the crate describes it. */
type Entry = { readonly type?: string } & Readonly<Record<string, unknown>>;

/**
 * The lines of a conversation, kept outside the module.
 *
 * @internal
 */
export class SavedText {
  #pieces: string[] = [];

  constructor(text?: string) {
    if (text !== undefined) this.#pieces.push(text);
  }

  /** Adds lines; those that begin with a header take the place of all. Gives what reads the text as it is now. */
  add(lines: string): () => string {
    if (isWhole(lines)) this.#pieces = [];
    this.#pieces.push(lines);
    const pieces = this.#pieces;
    const count = pieces.length;
    return () => pieces.slice(0, count).join("");
  }

  /** The whole text; `undefined` while there is none. */
  get text(): string | undefined {
    if (this.#pieces.length > 1) this.#pieces = [this.#pieces.join("")];
    return this.#pieces[0];
  }
}

/** Whether these lines are a whole conversation and not an addition to one. */
export const isWhole = (lines: string): boolean => lines.startsWith('{"format":');

/** The lines without their line feeds. */
export const entriesOf = (lines: string): string[] => lines.split("\n").filter((line) => line.trim() !== "");

/**
 * Reads a saved conversation.
 *
 * @throws CrabletError `invalid-input` when it is damaged.
 */
export function contentsOf(text: string): SavedContents {
  const { entries, state } = read(text);
  const messages = historyOf(entries, state);
  const run = runOf(state);
  const isEnding = run?.phase?.type === "ending";
  const queued = { steers: state.steers ?? [], followUps: state.followUps ?? [] } as QueuedMessages;
  const calls = openCalls(entries, state, []);
  const of = (stage: string): OpenCall[] => calls.filter((call) => call.stage === stage);
  return {
    messages,
    pending: of("awaiting-approval").map(({ call }) => call),
    started: of("started"),
    isOpen: run !== undefined && run !== null && !isEnding,
    isEnding,
    queued,
    dueAt: deadlinesOf(state).sort((one, other) => one - other)[0],
  };
}

/** Every message of a saved conversation in the order in which they came. */
export function treeOf(text: string): TreeEntry[] {
  const { entries } = read(text);
  const labels = new Map<unknown, unknown>();
  for (const { type, id, label } of entries) if (type === "label") labels.set(id, label);
  return messageEntries(entries).map(({ message, parent }) => ({
    message,
    parentId: parent ?? undefined,
    label: (labels.get(message.id) as string | null | undefined) ?? undefined,
  }));
}

/** The lines that move a saved conversation to another place; `undefined` for an empty history. */
export function moveLines(text: string, id: string | undefined): string {
  const { entries, state } = read(text);
  if (id !== undefined) placeOf(entries, id);
  const { contextTokens: _counted, ...rest } = state;
  return `${JSON.stringify({ ...rest, head: id ?? null })}\n`;
}

/** The lines that name a place of a saved conversation; `undefined` takes the name away. */
export function labelLines(text: string, id: string, label: string | undefined): string {
  const { entries, state } = read(text);
  messageOf(entries, id);
  return `${JSON.stringify({ type: "label", id, label: label ?? null })}\n${JSON.stringify(state)}\n`;
}

/** A conversation that begins with the way to a message and goes its own way. */
export function forkText(text: string, id: string): string {
  const { entries, lines, state } = read(text);
  placeOf(entries, id);
  const kept = new Set(historyOf(entries, { ...state, head: id }).map((message) => message.id));
  const isKept = (entry: Entry): boolean =>
    (entry.type === "message" && kept.has((entry.message as Message).id)) ||
    (entry.type === "compaction" && kept.has(entry.last as string)) ||
    (entry.type === "label" && kept.has(entry.id as string));
  const seed = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0"));
  const { contextTokens: _counted, ...rest } = state;
  return [
    JSON.stringify({ ...entries[0], seed: seed.join("") }),
    // Their own text: the JSON of a model is kept to the letter.
    ...lines.filter((_, index) => isKept(entries[index] as Entry)),
    JSON.stringify({ ...rest, head: id, steers: [], followUps: [], run: null }),
    "",
  ].join("\n");
}

interface OpenCall extends StartedCall {
  readonly stage: unknown;
}

const runOf = (state: Entry) =>
  state.run as
    | {
        readonly timers?: readonly { readonly at: number }[];
        readonly phase?: { readonly calls?: readonly Entry[] } & Entry;
      }
    | null
    | undefined;

/** What a run waits for, in milliseconds of Unix time. */
function deadlinesOf(state: Entry): number[] {
  const run = runOf(state);
  const within = (run?.phase?.calls ?? []).flatMap(({ session }) => (session ? deadlinesOf(session as Entry) : []));
  return [...(run?.timers ?? []).map(({ at }) => at), ...within];
}

/** The calls that a run is at, those of sub-agents too. */
function openCalls(entries: readonly Entry[], state: Entry, path: readonly string[]): OpenCall[] {
  const last = historyOf(entries, state).at(-1);
  const asked = last?.role === "assistant" ? last.content.filter((part) => part.type === "tool-call") : [];
  return (runOf(state)?.phase?.calls ?? []).flatMap(({ callId, stage, input, session }): OpenCall[] => {
    const call = asked.find((candidate) => candidate.callId === callId);
    if (call === undefined) return [];
    const { toolName } = call;
    const tools = [...path, toolName];
    if (stage !== "delegated")
      return [{ stage, path: tools, call: { callId: call.callId, toolName, input: input ?? call.input } }];
    const within = entries.filter((entry) => entry.type === "within" && entry.callId === callId);
    return openCalls(
      within.map(({ entry }) => entry as Entry),
      session as Entry,
      tools,
    );
  });
}

interface MessageEntry {
  readonly message: Message;
  readonly parent: string | null;
}

const messageEntries = (entries: readonly Entry[]): MessageEntry[] =>
  entries.filter(({ type }) => type === "message") as unknown as MessageEntry[];

function historyOf(entries: readonly Entry[], state: Entry): Message[] {
  // Version 1 is one object with everything.
  if (Array.isArray(state.messages)) return state.messages as Message[];
  const byId = new Map(messageEntries(entries).map((entry) => [entry.message.id, entry]));
  const messages: Message[] = [];
  for (let entry = byId.get(state.head as string); entry !== undefined; entry = byId.get(entry.parent as string)) {
    messages.push(entry.message);
  }
  return messages.reverse();
}

function messageOf(entries: readonly Entry[], id: string): Message {
  const entry = messageEntries(entries).find(({ message }) => message.id === id);
  if (entry === undefined) throw invalidInput(`there is no message ${id} in this session`);
  return entry.message;
}

/** A message after which a conversation can go on. */
function placeOf(entries: readonly Entry[], id: string): void {
  const { role, content } = messageOf(entries, id);
  if (role === "assistant" && content.some(({ type }) => type === "tool-call"))
    throw invalidInput(
      `no conversation can go on after the message ${id}, between calls and their results: choose a user message, a final ` +
        "answer or the results",
    );
}

interface Saved {
  readonly entries: readonly Entry[];
  readonly lines: readonly string[];
  readonly state: Entry;
}

/** The entries up to the last state; what stands behind it was not saved to its end. */
function read(text: string): Saved {
  const lines = entriesOf(text);
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
  const state = entries[count - 1];
  if (state === undefined) throw damaged();
  return { entries: entries.slice(0, count), lines: lines.slice(0, count), state };
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
