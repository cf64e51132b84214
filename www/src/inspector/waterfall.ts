// Where the time of a run went: a span for each model call and each tool call.
import type { Usage } from "crablet";
import { ownName } from "../chat/tool-name";
import type { LogEntry } from "./event-log";

export interface Span {
  readonly id: string;
  readonly kind: "model" | "tool";
  readonly label: string;
  /** Milliseconds from the run's start. */
  readonly start: number;
  readonly end: number;
  /** For a model call: when its first output came. */
  readonly firstOutput: number | undefined;
  readonly outcome: "running" | "ok" | "error";
  /** For a model call that is over: its tokens, and what they cost. */
  readonly usage?: Usage;
}

export interface RunSpans {
  readonly runId: string;
  readonly duration: number;
  readonly spans: readonly Span[];
  /** What all its steps took; absent while it runs. */
  readonly usage: Usage | undefined;
}

/** The spans of every run in the log, the newest run first. */
export function runsOf(entries: readonly LogEntry[]): readonly RunSpans[] {
  const byRun = new Map<string, LogEntry[]>();
  for (const entry of entries) {
    const run = byRun.get(entry.event.runId);
    if (run) run.push(entry);
    else byRun.set(entry.event.runId, [entry]);
  }
  return [...byRun].map(([runId, run]) => spansOf(runId, run)).reverse();
}

function spansOf(runId: string, entries: readonly LogEntry[]): RunSpans {
  const origin = entries[0]?.at ?? 0;
  const spans = new Map<string, Span>();
  let model: string | undefined;
  let attempt = 1;
  let usage: Usage | undefined;

  const openModel = (step: number, at: number) => {
    model = `step-${step}-${attempt}`;
    const label = attempt > 1 ? `model, attempt ${attempt}` : "model";
    spans.set(model, {
      id: model,
      kind: "model",
      label,
      start: at,
      end: at,
      firstOutput: undefined,
      outcome: "running",
    });
  };
  const change = (id: string | undefined, update: Partial<Span>) => {
    const span = id === undefined ? undefined : spans.get(id);
    if (span) spans.set(span.id, { ...span, ...update });
  };

  for (const { event, at, until } of entries) {
    const time = at - origin;
    switch (event.type) {
      case "step-start":
        attempt = 1;
        openModel(event.step, time);
        break;
      case "step-retry":
        change(model, { end: time, outcome: "error" });
        attempt = event.attempt;
        // The next attempt begins after the wait; until then nobody works.
        openModel(event.step, time + event.delayMs);
        break;
      case "text-start":
      case "reasoning-start":
      case "tool-input-start":
      case "text-delta":
      case "reasoning-delta":
      case "tool-input-delta":
      case "text-end":
      case "reasoning-end":
      case "tool-input-end":
      case "tool-call": {
        const first = model === undefined ? undefined : spans.get(model)?.firstOutput;
        change(model, { end: until - origin, firstOutput: first ?? time, outcome: "ok" });
        break;
      }
      case "tool-start":
        spans.set(event.callId, {
          id: event.callId,
          kind: "tool",
          label: toolName(entries, event.callId),
          start: time,
          end: time,
          firstOutput: undefined,
          outcome: "running",
        });
        break;
      case "tool-result":
        change(event.callId, { end: time, outcome: event.isError ? "error" : "ok" });
        break;
      case "step-end":
        change(model, { usage: event.usage });
        break;
      case "run-end":
        usage = event.usage;
        if (event.error) change(model, { outcome: "error" });
        for (const span of spans.values())
          if (span.outcome === "running") change(span.id, { end: time, outcome: "error" });
        break;
      default:
    }
  }
  const duration = Math.max(0, (entries.at(-1)?.until ?? origin) - origin);
  return { runId, duration, spans: [...spans.values()], usage };
}

function toolName(entries: readonly LogEntry[], callId: string): string {
  for (const { event } of entries)
    if (event.type === "tool-call" && event.callId === callId) return ownName(event.toolName, event.server);
  return "tool";
}
