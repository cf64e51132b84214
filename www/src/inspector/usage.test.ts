import { expect, test } from "vitest";
import { totalOf, usageWords } from "./usage";

test("tokens and cost are said in words, and a cost that is not known is no zero", () => {
  expect(usageWords({ inputTokens: 1_234, outputTokens: 5, cacheReadTokens: 1_000, cost: 0.00123 })).toBe(
    "1,234 tokens in, 1,000 from the cache, 5 out, $0.0012",
  );
  expect(usageWords({ inputTokens: 1, outputTokens: 2 })).toBe("1 tokens in, 2 out, cost not known");
  expect(usageWords({})).toBe("tokens not known, cost not known");
});

test("runs are added up, also where one is not over and one has no cost", () => {
  expect(totalOf([{ inputTokens: 1, cost: 0.5 }, undefined, { inputTokens: 2 }])).toEqual({
    inputTokens: 3,
    cost: 0.5,
  });
  expect(totalOf([])).toEqual({});
});
