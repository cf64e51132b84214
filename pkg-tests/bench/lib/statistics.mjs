// Order statistics: a benchmark on a shared machine has outliers on one side only, so medians and quartiles, no means.

/**
 * @param {number[]} numbers at least one
 * @returns {{ median: number, low: number, high: number, count: number }} `low` and `high` are the quartiles
 */
export function summary(numbers) {
  const sorted = [...numbers].sort((one, other) => one - other);
  const at = (part) => {
    const place = (sorted.length - 1) * part;
    const below = Math.floor(place);
    const above = Math.ceil(place);
    return sorted[below] + (sorted[above] - sorted[below]) * (place - below);
  };
  return { median: at(0.5), low: at(0.25), high: at(0.75), count: sorted.length };
}

/**
 * Ratios of numbers that were taken in turn: the n-th of both come from the same round, so that what slows the machine in
 * one round slows both.
 */
export function ratios(numbers, floor) {
  return summary(numbers.map((number, round) => number / floor[round]));
}

/** Three significant digits, without an exponent. */
export function short(number) {
  if (!Number.isFinite(number)) return String(number);
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(number) || 1)));
  return number.toFixed(Math.min(digits, 3));
}

/** A summary as `median (low–high)`. */
export function spread({ median, low, high }) {
  return `${short(median)} (${short(low)}–${short(high)})`;
}
