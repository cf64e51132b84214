// What the conversation looks like: a pure function from the agent's events to the items that are shown.
import type { AgentEvent, ErrorInfo, FilePart, Message, TextPart } from "crablet";

/** A tool call's way through its life. `writing`: the model still streams its arguments; `asking`: a person decides whether it runs. */
export type ToolStatus = "writing" | "asking" | "waiting" | "running" | "ok" | "error" | "stopped";

/** How a message comes into the conversation: as a prompt, between the steps of a run, or when the run would end. */
export type Via = "prompt" | "steer" | "follow-up";

export interface UserItem {
  readonly kind: "user";
  readonly id: string;
  readonly text: string;
  /** How it came into the conversation. */
  readonly via: Via;
  /** `pending`: given while a run works, and not taken in yet. */
  readonly delivery: "pending" | "delivered" | "dropped";
}

export interface TextItem {
  readonly kind: "text" | "reasoning";
  readonly id: string;
  readonly text: string;
  readonly open: boolean;
}

export interface ToolItem {
  readonly kind: "tool";
  readonly id: string;
  readonly callId: string;
  readonly name: string;
  readonly server: string | undefined;
  /** The JSON text of the arguments, as far as it has come. */
  readonly input: string;
  readonly status: ToolStatus;
  readonly progress: unknown;
  /** What the model reads of the result. */
  readonly content: readonly (TextPart | FilePart)[];
  /** What the tool returned as a value, where it did. */
  readonly value: unknown;
  /** Milliseconds of `performance.now()`. */
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
}

export interface NoticeItem {
  readonly kind: "notice";
  readonly id: string;
  readonly text: string;
  readonly error?: ErrorInfo;
}

export interface ErrorItem {
  readonly kind: "error";
  readonly id: string;
  readonly error: ErrorInfo;
}

export type Item = UserItem | TextItem | ToolItem | NoticeItem | ErrorItem;

export interface Transcript {
  readonly items: readonly Item[];
  /** Where the running step's own items begin: what a retry takes back. */
  readonly stepStart: number;
  readonly nextId: number;
  readonly tokens: Tokens;
}

/** Tokens of the conversation, as far as the provider counted them. */
export interface Tokens {
  readonly input: number;
  readonly output: number;
}

export const EMPTY: Transcript = { items: [], stepStart: 0, nextId: 0, tokens: { input: 0, output: 0 } };

/** The text that these items hold. */
export function textIn(items: readonly Item[]): string {
  return items.flatMap((item) => (item.kind === "text" ? [item.text] : [])).join("\n\n");
}

/** The text that answers the newest message of the user. */
export function answerOf(items: readonly Item[]): string {
  return textIn(items.slice(items.findLastIndex(({ kind }) => kind === "user") + 1));
}

/** The user speaks: as a prompt, or into a run that is working. */
export function withUserMessage(transcript: Transcript, text: string, via: Via): Transcript {
  return append(transcript, (id) => ({
    kind: "user",
    id,
    text,
    via,
    delivery: via === "prompt" ? "delivered" : "pending",
  }));
}

/** A run could not go on. Everything that was open is closed. */
export function withError(transcript: Transcript, error: ErrorInfo, now: number): Transcript {
  return append(closeOpen(transcript, now), (id) => ({ kind: "error", id, error }));
}

/** The items of a conversation that was saved: what its messages still say, in their order. */
export function withMessages(transcript: Transcript, messages: readonly Message[]): Transcript {
  return messages.reduce(withMessage, transcript);
}

function withMessage(transcript: Transcript, message: Message): Transcript {
  switch (message.role) {
    case "user": {
      const text = message.content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
      return append(transcript, (id) => ({
        kind: "user",
        id,
        text,
        via: viaOf(message.origin),
        delivery: "delivered",
      }));
    }
    case "assistant":
      return message.content.reduce((before, part) => {
        if (part.type === "text" || part.type === "reasoning") {
          return append(before, (id) => ({ kind: part.type, id, text: part.text, open: false }));
        }
        if (part.type !== "tool-call") return before;
        const input = part.inputText ?? printJson(part.input);
        return append(before, () => newTool(SAVED, part.callId, part.toolName, input, "stopped"));
      }, transcript);
    case "tool":
      return message.content.reduce(
        (before, { callId, isError, content, output }) =>
          changeTool(before, { ...SAVED, callId }, (tool) => ({
            ...tool,
            status: isError ? "error" : "ok",
            content,
            value: output,
            endedAt: 0,
          })),
        transcript,
      );
  }
}

function viaOf(origin: string | undefined): Via {
  return origin === "steered" ? "steer" : origin === "follow-up" ? "follow-up" : "prompt";
}

/** Stands for the runs of a saved conversation, which are not told apart any more. */
const SAVED = { runId: "saved" };

/** Takes in one event of the run. Kinds that show nothing, unknown ones included, change nothing. */
export function withEvent(transcript: Transcript, event: AgentEvent, now: number): Transcript {
  switch (event.type) {
    case "step-start":
      return { ...transcript, stepStart: transcript.items.length };
    case "text-start":
    case "reasoning-start": {
      const kind = event.type === "text-start" ? "text" : "reasoning";
      return append(transcript, () => ({ kind, id: blockId(event), text: "", open: true }));
    }
    case "text-delta":
    case "reasoning-delta":
      return change(transcript, blockId(event), (item) =>
        isText(item) ? { ...item, text: item.text + event.delta } : item,
      );
    case "text-end":
    case "reasoning-end":
      return change(transcript, blockId(event), (item) => (isText(item) ? { ...item, open: false } : item));
    case "tool-input-start":
      return append(transcript, () => newTool(event, event.callId, event.toolName, "", "writing"));
    case "tool-input-delta":
      return changeTool(transcript, event, (tool) => ({ ...tool, input: tool.input + event.delta }));
    case "tool-call": {
      const input = printJson(event.input);
      if (!transcript.items.some((item) => item.id === toolId(event, event.callId))) {
        return append(transcript, () => ({
          ...newTool(event, event.callId, event.toolName, input, "waiting"),
          server: event.server,
        }));
      }
      return changeTool(transcript, event, (tool) => ({ ...tool, input, server: event.server, status: "waiting" }));
    }
    case "approval-request":
      return changeTool(transcript, event, (tool) => ({ ...tool, input: printJson(event.input), status: "asking" }));
    case "approval-response":
      return changeTool(transcript, event, (tool) => ({ ...tool, status: "waiting" }));
    case "tool-start":
      return changeTool(transcript, event, (tool) => ({ ...tool, status: "running", startedAt: now }));
    case "tool-progress":
      return changeTool(transcript, event, (tool) => ({ ...tool, progress: event.data }));
    case "tool-result":
      return changeTool(transcript, event, (tool) => ({
        ...tool,
        status: event.isError ? "error" : "ok",
        content: event.content ?? [{ type: "text", text: printJson(event.output ?? "") }],
        value: event.output,
        endedAt: now,
      }));
    case "step-retry": {
      const kept = {
        ...transcript,
        items: transcript.items.filter((item, index) => index < transcript.stepStart || item.kind === "user"),
      };
      const noticed = append(kept, (id) => ({
        kind: "notice",
        id,
        text: retryWords(event.attempt, event.delayMs),
        error: event.error,
      }));
      return { ...noticed, stepStart: noticed.items.length };
    }
    case "steer-delivered":
      return settle(transcript, "steer", "delivered");
    case "steer-dropped":
      return settle(transcript, "steer", "dropped");
    case "message-added":
      return event.message.origin === "follow-up" ? settle(transcript, "follow-up", "delivered") : transcript;
    case "limit-reached":
      return append(transcript, (id) => ({
        kind: "notice",
        id,
        text: `The run reached its limit of ${event.limit} and stopped.`,
      }));
    case "step-end":
      return {
        ...transcript,
        tokens: {
          input: transcript.tokens.input + (event.usage.inputTokens ?? 0),
          output: transcript.tokens.output + (event.usage.outputTokens ?? 0),
        },
      };
    case "run-end":
      return closeOpen(transcript, now);
    default:
      return transcript;
  }
}

/** What never got its end is ended: an open text is complete as it stands, a tool without a result was stopped. */
function closeOpen(transcript: Transcript, now: number): Transcript {
  const items = transcript.items.map((item): Item => {
    if (isText(item) && item.open) return { ...item, open: false };
    if (item.kind === "tool" && item.endedAt === undefined) return { ...item, status: "stopped", endedAt: now };
    if (item.kind === "user" && item.via === "steer" && item.delivery === "pending")
      return { ...item, delivery: "dropped" };
    return item;
  });
  return { ...transcript, items, stepStart: items.length };
}

function settle(transcript: Transcript, via: Via, delivery: "delivered" | "dropped"): Transcript {
  const index = transcript.items.findIndex(
    (item) => item.kind === "user" && item.via === via && item.delivery === "pending",
  );
  const item = transcript.items[index];
  if (item?.kind !== "user") return transcript;
  // A delivered message stands where the agent took it in: after all that came before it.
  const rest = transcript.items.filter((_, position) => position !== index);
  const settled: UserItem = { ...item, delivery };
  return {
    ...transcript,
    items: delivery === "delivered" ? [...rest, settled] : transcript.items.with(index, settled),
  };
}

function append(transcript: Transcript, make: (id: string) => Item): Transcript {
  return { ...transcript, items: [...transcript.items, make(`n${transcript.nextId}`)], nextId: transcript.nextId + 1 };
}

function change(transcript: Transcript, id: string, update: (item: Item) => Item): Transcript {
  // The item that changes is nearly always among the last.
  const index = transcript.items.findLastIndex((item) => item.id === id);
  const item = transcript.items[index];
  return item ? { ...transcript, items: transcript.items.with(index, update(item)) } : transcript;
}

function changeTool(
  transcript: Transcript,
  event: { runId: string; callId: string },
  update: (tool: ToolItem) => ToolItem,
): Transcript {
  return change(transcript, toolId(event, event.callId), (item) => (item.kind === "tool" ? update(item) : item));
}

function newTool(event: { runId: string }, callId: string, name: string, input: string, status: ToolStatus): ToolItem {
  return {
    kind: "tool",
    id: toolId(event, callId),
    callId,
    name,
    server: undefined,
    input,
    status,
    progress: undefined,
    content: [],
    value: undefined,
    startedAt: undefined,
    endedAt: undefined,
  };
}

function isText(item: Item): item is TextItem {
  return item.kind === "text" || item.kind === "reasoning";
}

function blockId(event: { runId: string; id: string }): string {
  return `${event.runId}/block/${event.id}`;
}

function toolId(event: { runId: string }, callId: string): string {
  return `${event.runId}/call/${callId}`;
}

function printJson(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, undefined, 2);
}

function retryWords(attempt: number, delayMs: number): string {
  const wait = delayMs >= 1_000 ? ` in ${Math.round(delayMs / 1_000)} s` : "";
  return `Trying again${wait} (attempt ${attempt}).`;
}
