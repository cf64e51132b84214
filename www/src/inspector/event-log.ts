// What the agent said, in order and with the time: the inspector's source.
import type { AgentEvent } from "crablet";

export interface LogEntry {
  readonly id: number;
  /** Milliseconds of `performance.now()`. */
  readonly at: number;
  /** When the last of the events joined in this entry came. */
  readonly until: number;
  /** The event; of joined deltas the first, with the whole text. */
  readonly event: AgentEvent;
  /** How many events are joined here. */
  readonly count: number;
}

export interface EventLog {
  readonly entries: readonly LogEntry[];
  readonly nextId: number;
}

export const EMPTY_LOG: EventLog = { entries: [], nextId: 0 };

/** The most entries kept: some hours of conversation. Older ones are dropped, a fifth at a time. */
export const MAX_ENTRIES = 2_500;

/** Takes in one event. Deltas of one block that follow each other are one entry. */
export function withLogged(log: EventLog, event: AgentEvent, now: number): EventLog {
  const last = log.entries.at(-1);
  const joined = last && join(last, event, now);
  if (joined) return { ...log, entries: log.entries.with(-1, joined) };
  const kept = log.entries.length >= MAX_ENTRIES ? log.entries.slice(MAX_ENTRIES / 5) : log.entries;
  return { entries: [...kept, { id: log.nextId, at: now, until: now, event, count: 1 }], nextId: log.nextId + 1 };
}

function join(last: LogEntry, event: AgentEvent, now: number): LogEntry | undefined {
  const before = last.event;
  if (!isDelta(before) || !isDelta(event)) return undefined;
  if (before.type !== event.type || before.id !== event.id || before.runId !== event.runId) return undefined;
  return { ...last, until: now, event: { ...before, delta: before.delta + event.delta }, count: last.count + 1 };
}

type Delta = Extract<AgentEvent, { readonly delta: string }>;

function isDelta(event: AgentEvent): event is Delta {
  return "delta" in event;
}
