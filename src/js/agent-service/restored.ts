import type { AgentEvent } from "../event.js";
import type { Message, StopReason, ToolResultPart, Usage } from "../message.js";
import { contentsOf } from "../saved-text.js";
import type { EventTail } from "./event-log.js";
import { entryOf, lastState, type SavedState } from "./inputs.js";
import type { ServiceEvent } from "./protocol.js";

/**
 * What a worker that has claimed a session does first, by what is saved of it and by how its events end.
 *
 * @internal
 */
export interface Plan {
  /** Events that say what holds of what was shown; none when the events end as the session does. */
  readonly events: readonly (AgentEvent | ServiceEvent)[];
  /** Whether a run is to be gone on with at once. */
  readonly resumes: boolean;
  /** Whether a worker that is only slow may still be at the session. */
  readonly fences: boolean;
  /** Whether a run is not finished. */
  readonly isOpen: boolean;
}

/** @internal */
export function planOf(entries: readonly string[], tail: EventTail, now: number): Plan {
  const isClean = tail.phase === "none" || tail.phase === "ended";
  if (entries.length === 0)
    return {
      ...NOTHING,
      events: isClean ? [] : [{ type: "session-restored", isOpen: false, messages: [], results: [] }],
    };
  const state: SavedState = lastState(entries) ?? {};
  const contents = contentsOf(`${entries.join("\n")}\n`);
  const restored = (): ServiceEvent => ({
    type: "session-restored",
    isOpen: contents.isOpen,
    messages: sinceLastPrompt(contents.messages),
    results: contents.isOpen ? openResults(entries, contents.messages) : [],
  });
  if (contents.isOpen) {
    const isSuspended = tail.phase === "suspended" && tail.runId === state.run?.id;
    if (!isSuspended) return { events: [restored()], resumes: true, fences: true, isOpen: true };
    const isDue = (contents.dueAt ?? Number.POSITIVE_INFINITY) <= now;
    return { ...NOTHING, resumes: isDue, isOpen: true };
  }
  const run = contents.isEnding ? (state.run as EndingRun | undefined) : undefined;
  const isTold = tail.phase === "ended" && (run === undefined || tail.runId === run.id);
  if (isTold || (isClean && run === undefined)) return NOTHING;
  return {
    events: [restored(), ...(run === undefined ? [] : [endOf(run)])],
    resumes: false,
    fences: true,
    isOpen: false,
  };
}

const NOTHING: Plan = { events: [], resumes: false, fences: false, isOpen: false };

interface EndingRun {
  readonly id: string;
  readonly steps: number;
  readonly phase: {
    readonly type: "ending";
    readonly stopReason: StopReason;
    readonly text: string;
    readonly usage: Usage;
  };
}

/** The event of a run whose end was saved and perhaps not shown. */
function endOf({ id, steps, phase }: EndingRun): AgentEvent {
  const { type: _type, ...end } = phase;
  return { type: "run-end", runId: id, step: Math.max(steps - 1, 0), ...end };
}

/** The messages from the last one that began a run. */
function sinceLastPrompt(messages: readonly Message[]): readonly Message[] {
  const last = messages.findLastIndex(
    (message) => message.role === "user" && (message.origin === undefined || message.origin === "prompt"),
  );
  return messages.slice(Math.max(last, 0));
}

/** The results of the open step that are saved. */
function openResults(entries: readonly string[], messages: readonly Message[]): ToolResultPart[] {
  const last = messages.at(-1);
  if (last?.role !== "assistant") return [];
  const open = new Set(last.content.flatMap((part) => (part.type === "tool-call" ? [part.callId] : [])));
  const results = new Map<string, ToolResultPart>();
  for (const line of entries) {
    const entry = line.startsWith('{"type":"result"') ? entryOf(line) : undefined;
    const result = entry?.result as ToolResultPart | undefined;
    if (result !== undefined && open.has(result.callId)) results.set(result.callId, result);
  }
  return [...results.values()];
}
