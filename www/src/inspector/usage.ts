// Tokens and cost, in words.
import type { Usage } from "crablet";
import { count, dollars } from "./units";

const AMOUNTS = [
  "inputTokens",
  "outputTokens",
  "cacheReadTokens",
  "cacheWriteTokens",
  "reasoningTokens",
  "cost",
] as const;

/** The sum of what several runs took. An amount that none of them knows is absent. */
export function totalOf(usages: readonly (Usage | undefined)[]): Usage {
  return Object.fromEntries(
    AMOUNTS.flatMap((name) => {
      const known = usages.flatMap((usage) => usage?.[name] ?? []);
      return known.length > 0 ? [[name, known.reduce((sum, amount) => sum + amount, 0)]] : [];
    }),
  );
}

/** What a run took. A cost that is not known is said to be so, and never taken for nothing. */
export function usageWords(usage: Usage): string {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens, cost } = usage;
  const words = [
    inputTokens !== undefined && `${count(inputTokens)} tokens in`,
    cacheReadTokens !== undefined && cacheReadTokens > 0 && `${count(cacheReadTokens)} from the cache`,
    cacheWriteTokens !== undefined && cacheWriteTokens > 0 && `${count(cacheWriteTokens)} to the cache`,
    outputTokens !== undefined && `${count(outputTokens)} out`,
    inputTokens === undefined && outputTokens === undefined && "tokens not known",
    reasoningTokens !== undefined && reasoningTokens > 0 && `${count(reasoningTokens)} of them reasoning`,
    cost === undefined ? "cost not known" : dollars(cost),
  ];
  return words.filter((word) => word !== false).join(", ");
}
