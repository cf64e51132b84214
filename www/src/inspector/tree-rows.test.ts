import type { Message, TreeEntry } from "crablet";
import { expect, test } from "vitest";
import { rowsOf } from "./tree-rows";

const entry = (id: string, parentId: string | undefined, message: Partial<Message> = {}): TreeEntry => ({
  message: { id, role: "user", content: [{ type: "text", text: id }], ...message } as Message,
  parentId,
  label: undefined,
});

test("branches stand further in, each with all that follows it", () => {
  const rows = rowsOf([entry("a", undefined), entry("b", "a"), entry("c", "b"), entry("d", "a"), entry("e", "d")], "e");
  expect(rows.map(({ id, depth }) => [id, depth])).toEqual([
    ["a", 0],
    ["b", 1],
    ["c", 1],
    ["d", 1],
    ["e", 1],
  ]);
  expect(rows.filter(({ isCurrent }) => isCurrent).map(({ id }) => id)).toEqual(["a", "d", "e"]);
  expect(rows.filter(({ isHead }) => isHead).map(({ id }) => id)).toEqual(["e"]);
});

test("an answer with calls is no place to go on from, its results are", () => {
  const call = { type: "tool-call", callId: "1", toolName: "read" } as const;
  const result = { type: "tool-result", callId: "1", toolName: "read", content: [], isError: false } as const;
  const rows = rowsOf(
    [
      entry("a", undefined, { role: "assistant", content: [call] }),
      entry("b", "a", { role: "tool", content: [result] }),
    ],
    "b",
  );
  expect(rows.map(({ text, isPlace }) => [text, isPlace])).toEqual([
    ["calls read", false],
    ["result of read", true],
  ]);
});

test("a conversation may be long", () => {
  const long = Array.from({ length: 20_000 }, (_, index) => entry(`${index}`, index > 0 ? `${index - 1}` : undefined));
  expect(rowsOf(long, "19999").every(({ depth, isCurrent }) => depth === 0 && isCurrent)).toBe(true);
});
