import type { FilePart, TextPart } from "crablet";
import { expect, test } from "vitest";
import { oneLine, printed, tableOf, textOf } from "./tool-output";

test("text parts are joined; files have no text", () => {
  const content: readonly (TextPart | FilePart)[] = [
    { type: "text", text: "a" },
    { type: "image", mediaType: "image/png", data: "AA==" },
    { type: "text", text: "b" },
  ];
  expect(textOf(content)).toBe("a\nb");
});

test("a list of flat objects is a table, with the columns of all its rows", () => {
  const expected = {
    columns: ["a", "b"],
    rows: [
      ["1", ""],
      ["", "true"],
    ],
  };
  expect(tableOf([{ a: 1 }, { b: true, a: null }])).toEqual(expected);
  expect(tableOf({ count: 2, rows: [{ a: 1 }, { b: true }] })).toEqual(expected);
});

test.each(["text", [[1, 2]], [[]], [[{ a: { b: 1 } }]], [{ one: [{ a: 1 }], two: [{ a: 1 }] }], null])(
  "%j is no table",
  (value) => {
    expect(tableOf(value)).toBeUndefined();
  },
);

test("long texts are cut, and say so", () => {
  expect(printed("x".repeat(30_000))).toMatch(/… \(10000 more\)$/);
  expect(oneLine(`a\n\n  b${" c".repeat(500)}`)).toMatch(/^a b c c/);
  expect(oneLine("x".repeat(1_000)).length).toBe(200);
});
