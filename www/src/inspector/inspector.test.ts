import type { AgentEvent } from "crablet";
import { expect, test } from "vitest";
import { EMPTY_LOG, MAX_ENTRIES, withLogged, type EventLog } from "./event-log";
import { runsOf } from "./waterfall";

type Timed = readonly [at: number, event: { readonly type: string; readonly [field: string]: unknown }];

const logOf = (events: readonly Timed[]): EventLog =>
  events.reduce(
    (log, [at, event]) => withLogged(log, { runId: "r1", step: 0, ...event } as unknown as AgentEvent, at),
    EMPTY_LOG,
  );

test("deltas of one block are one entry; those of another are not", () => {
  const { entries } = logOf([
    [0, { type: "text-delta", id: "0", delta: "a" }],
    [5, { type: "text-delta", id: "0", delta: "b" }],
    [6, { type: "text-delta", id: "1", delta: "c" }],
  ]);
  expect(entries).toMatchObject([
    { at: 0, until: 5, count: 2, event: { delta: "ab" } },
    { at: 6, count: 1 },
  ]);
});

test("the log is bounded, and keeps the newest", () => {
  const { entries } = logOf(
    Array.from({ length: MAX_ENTRIES + 10 }, (_, index): Timed => [index, { type: "step-start", step: index }]),
  );
  expect(entries.length).toBeLessThanOrEqual(MAX_ENTRIES);
  expect(entries.at(-1)?.event.step).toBe(MAX_ENTRIES + 9);
});

test("a run with two tools at once has overlapping spans between two model calls", () => {
  const log = logOf([
    [100, { type: "run-start" }],
    [100, { type: "step-start" }],
    [140, { type: "tool-input-start", id: "0", callId: "a", toolName: "read" }],
    [160, { type: "tool-call", callId: "a", toolName: "read", input: {} }],
    [160, { type: "tool-call", callId: "b", toolName: "list", input: {} }],
    [161, { type: "tool-start", callId: "a", input: {} }],
    [161, { type: "tool-start", callId: "b", input: {} }],
    [170, { type: "tool-result", callId: "b", toolName: "list", content: [], isError: true }],
    [190, { type: "tool-result", callId: "a", toolName: "read", content: [], isError: false }],
    [190, { type: "step-end", usage: { inputTokens: 7 } }],
    [190, { type: "step-start", step: 1 }],
    [220, { type: "text-delta", id: "1", delta: "x", step: 1 }],
    [230, { type: "run-end", step: 1, stopReason: "stop", usage: { inputTokens: 9 }, text: "x" }],
  ]);
  expect(runsOf(log.entries)).toEqual([
    {
      runId: "r1",
      duration: 130,
      usage: { inputTokens: 9 },
      spans: [
        {
          id: "step-0-1",
          kind: "model",
          label: "model",
          start: 0,
          end: 60,
          firstOutput: 40,
          outcome: "ok",
          usage: { inputTokens: 7 },
        },
        { id: "a", kind: "tool", label: "read", start: 61, end: 90, firstOutput: undefined, outcome: "ok" },
        { id: "b", kind: "tool", label: "list", start: 61, end: 70, firstOutput: undefined, outcome: "error" },
        { id: "step-1-1", kind: "model", label: "model", start: 90, end: 120, firstOutput: 120, outcome: "ok" },
      ],
    },
  ]);
});

test("a failed attempt and the one after it are two spans with the wait between them", () => {
  const [run] = runsOf(
    logOf([
      [0, { type: "step-start" }],
      [50, { type: "step-retry", attempt: 2, delayMs: 1_000, error: { kind: "overloaded" } }],
      [1_100, { type: "text-delta", id: "0", delta: "x" }],
    ]).entries,
  );
  expect(run?.spans).toMatchObject([
    { label: "model", end: 50, outcome: "error" },
    { label: "model, attempt 2", start: 1_050, end: 1_100, outcome: "ok" },
  ]);
});
