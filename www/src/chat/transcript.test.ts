import type { AgentEvent, Message } from "crablet";
import { describe, expect, test } from "vitest";
import {
  answerOf,
  EMPTY,
  withError,
  withEvent,
  withMessages,
  withUserMessage,
  type Item,
  type Transcript,
} from "./transcript";

type Loose = { readonly type: string; readonly [field: string]: unknown };

/** The transcript after these events, the time going up by ten milliseconds an event. */
function afterEvents(events: readonly Loose[], start: Transcript = EMPTY): Transcript {
  return events.reduce(
    (transcript, event, index) =>
      withEvent(transcript, { runId: "r1", step: 0, ...event } as unknown as AgentEvent, index * 10),
    start,
  );
}

const kinds = (transcript: Transcript) => transcript.items.map((item) => item.kind);
const find = <K extends Item["kind"]>(transcript: Transcript, kind: K) =>
  transcript.items.find((item): item is Extract<Item, { kind: K }> => item.kind === kind);

const CALL = [
  { type: "step-start" },
  { type: "tool-input-start", id: "1", callId: "c1", toolName: "read" },
  { type: "tool-input-delta", id: "1", callId: "c1", delta: '{"pa' },
  { type: "tool-input-delta", id: "1", callId: "c1", delta: 'th":"a"}' },
  { type: "tool-input-end", id: "1", callId: "c1" },
  { type: "tool-call", callId: "c1", toolName: "read", input: { path: "a" }, server: "files" },
  { type: "tool-start", callId: "c1", input: { path: "a" } },
];

describe("text", () => {
  test("the answer is the text after the newest message of the user", () => {
    const told = [
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "one" },
    ];
    const first = afterEvents(told, withUserMessage(EMPTY, "Hello", "prompt"));
    expect(answerOf(first.items)).toBe("one");
    const second = withUserMessage(first, "And?", "prompt");
    expect(answerOf(second.items)).toBe("");
    expect(answerOf(afterEvents([...CALL, { type: "step-start", step: 1 }, ...told], second).items)).toBe("one");
  });

  test("deltas go to their own block", () => {
    const transcript = afterEvents([
      { type: "reasoning-start", id: "0" },
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "Hel" },
      { type: "reasoning-delta", id: "0", delta: "hm" },
      { type: "text-delta", id: "1", delta: "lo" },
      { type: "text-end", id: "1" },
    ]);
    expect(find(transcript, "text")).toMatchObject({ text: "Hello", open: false });
    expect(find(transcript, "reasoning")).toMatchObject({ text: "hm", open: true });
  });

  test("blocks of two runs with the same id stay apart", () => {
    const one = afterEvents([
      { type: "text-start", id: "0" },
      { type: "text-delta", id: "0", delta: "one" },
    ]);
    const two = afterEvents(
      [
        { type: "text-start", id: "0", runId: "r2" },
        { type: "text-delta", id: "0", delta: "two", runId: "r2" },
      ],
      one,
    );
    expect(two.items.map((item) => item.kind === "text" && item.text)).toEqual(["one", "two"]);
  });
});

describe("tool calls", () => {
  test("arguments are shown as they stream, then as they are", () => {
    expect(find(afterEvents(CALL.slice(0, 3)), "tool")).toMatchObject({ status: "writing", input: '{"pa' });
    expect(find(afterEvents(CALL.slice(0, 6)), "tool")).toMatchObject({
      status: "waiting",
      input: '{\n  "path": "a"\n}',
      server: "files",
    });
  });

  test("a call has its time and its result", () => {
    const transcript = afterEvents([
      ...CALL,
      { type: "tool-result", callId: "c1", content: [{ type: "text", text: "text" }], isError: false },
    ]);
    expect(find(transcript, "tool")).toMatchObject({
      status: "ok",
      content: [{ type: "text", text: "text" }],
      startedAt: 60,
      endedAt: 70,
    });
  });

  test("a result that is a value is shown as its text, and kept as a value", () => {
    const transcript = afterEvents([
      ...CALL,
      { type: "tool-result", callId: "c1", output: { rows: 2 }, isError: false },
    ]);
    expect(find(transcript, "tool")).toMatchObject({
      content: [{ type: "text", text: '{\n  "rows": 2\n}' }],
      value: { rows: 2 },
    });
  });

  test("a call without streamed arguments is shown too", () => {
    expect(find(afterEvents(CALL.slice(5, 6)), "tool")).toMatchObject({ name: "read", status: "waiting" });
  });

  test("what runs when the run ends was stopped", () => {
    expect(find(afterEvents([...CALL, { type: "run-end" }]), "tool")).toMatchObject({ status: "stopped" });
  });
});

describe("approvals", () => {
  const asked = [
    ...CALL.slice(0, 6),
    { type: "approval-request", callId: "c1", toolName: "read", input: { path: "b" } },
  ];

  test("a call that waits for a person shows the input that would run", () => {
    expect(find(afterEvents(asked), "tool")).toMatchObject({ status: "asking", input: '{\n  "path": "b"\n}' });
  });

  test("after the answer it waits for its turn", () => {
    const transcript = afterEvents([...asked, { type: "approval-response", callId: "c1", allowed: true }]);
    expect(find(transcript, "tool")?.status).toBe("waiting");
  });
});

describe("retries", () => {
  test("take back what the failed attempt showed, and nothing before it", () => {
    const before = afterEvents(
      [{ type: "step-start" }, { type: "text-start", id: "0" }, { type: "text-end", id: "0" }],
      withUserMessage(EMPTY, "hi", "prompt"),
    );
    const transcript = afterEvents(
      [
        { type: "step-start" },
        { type: "text-start", id: "1" },
        { type: "text-delta", id: "1", delta: "half" },
        {
          type: "step-retry",
          attempt: 2,
          delayMs: 2_000,
          error: { kind: "overloaded", message: "m", retryable: true },
        },
        { type: "text-start", id: "2" },
        { type: "text-delta", id: "2", delta: "whole" },
      ],
      before,
    );
    expect(kinds(transcript)).toEqual(["user", "text", "notice", "text"]);
    expect(find(transcript, "notice")?.text).toBe("Trying again in 2 s (attempt 2).");
  });
});

describe("steering", () => {
  test("a delivered message moves to where the agent took it in", () => {
    const steered = withUserMessage(
      afterEvents([{ type: "step-start" }, { type: "text-start", id: "0" }]),
      "stop at 5",
      "steer",
    );
    const transcript = afterEvents(
      [{ type: "text-start", id: "1" }, { type: "steer-delivered" }, { type: "text-start", id: "2" }],
      steered,
    );
    expect(kinds(transcript)).toEqual(["text", "text", "user", "text"]);
    expect(find(transcript, "user")?.delivery).toBe("delivered");
  });

  test("a message that came too late says so", () => {
    const steered = withUserMessage(afterEvents([{ type: "step-start" }]), "too late", "steer");
    expect(find(afterEvents([{ type: "run-end" }], steered), "user")?.delivery).toBe("dropped");
  });
});

test("tokens add up over the steps; what was not counted is nothing", () => {
  const usages = [{ inputTokens: 10, outputTokens: 2 }, {}, { inputTokens: 5 }];
  expect(afterEvents(usages.map((usage) => ({ type: "step-end", usage }))).tokens).toEqual({ input: 15, output: 2 });
});

test("a follow-up waits until the agent takes it in, beyond the end of a run if need be", () => {
  const queued = withUserMessage(afterEvents([{ type: "text-start", id: "0" }]), "and then", "follow-up");
  expect(find(afterEvents([{ type: "run-end" }], queued), "user")?.delivery).toBe("pending");
  const added = { type: "message-added", message: { role: "user", content: [], origin: "follow-up" } };
  const transcript = afterEvents([{ type: "text-start", id: "1" }, added], queued);
  expect(kinds(transcript)).toEqual(["text", "text", "user"]);
  expect(find(transcript, "user")?.delivery).toBe("delivered");
});

test("an error closes what was open and is shown last", () => {
  const transcript = withError(afterEvents(CALL), { kind: "network", message: "m", retryable: true }, 99);
  expect(kinds(transcript)).toEqual(["tool", "error"]);
  expect(find(transcript, "tool")).toMatchObject({ status: "stopped", endedAt: 99 });
});

test("events of a kind this version does not know change nothing", () => {
  const transcript = afterEvents(CALL);
  expect(afterEvents([{ type: "from-the-future" }], transcript)).toBe(transcript);
});

test("a saved conversation shows what it showed before", () => {
  const messages: readonly Message[] = [
    { role: "user", content: [{ type: "text", text: "read a" }] },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "hm" },
        { type: "tool-call", callId: "c1", toolName: "read", input: { path: "a" } },
        { type: "tool-call", callId: "c2", toolName: "read", inputText: "{", invalid: "cut" },
      ],
    },
    {
      role: "tool",
      content: [
        { type: "tool-result", callId: "c1", toolName: "read", content: [{ type: "text", text: "A" }], isError: false },
        {
          type: "tool-result",
          callId: "c2",
          toolName: "read",
          content: [{ type: "text", text: "malformed" }],
          isError: true,
        },
      ],
    },
    { role: "user", content: [{ type: "text", text: "faster" }], origin: "steered" },
    { role: "assistant", content: [{ type: "text", text: "A it is" }] },
  ];
  expect(withMessages(EMPTY, messages).items).toMatchObject([
    { kind: "user", text: "read a" },
    { kind: "reasoning", text: "hm", open: false },
    { kind: "tool", status: "ok", content: [{ text: "A" }] },
    { kind: "tool", status: "error", input: "{" },
    { kind: "user", text: "faster", via: "steer", delivery: "delivered" },
    { kind: "text", text: "A it is" },
  ]);
});
