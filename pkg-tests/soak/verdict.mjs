// Whether a value grew: the median of its last samples beside that of the samples after the warm-up. Medians, since single
// samples depend on where a garbage collector or an allocator just is.
import { summary } from "../bench/lib/statistics.mjs";

/** The part of the time that is warm-up: modules are loaded, pools filled, allocators have their size. */
const WARM_UP = 0.3;

/** The part of the time whose samples are one value. */
const WINDOW = 0.15;

/** How much more at the end is no growth. */
const TOLERANCE = 0.1;

/**
 * @param {{ part: number, values: Record<string, number> }[]} samples `part` is when, from 0 to 1 of the whole time
 * @param {Record<string, number>} slack what is no growth however small the value was, by name
 * @returns {{ name: string, after: number, end: number, grew: boolean }[]} by name: the value after the warm-up and at the end
 */
export function verdicts(samples, slack = {}) {
  const within = (from, to) => samples.filter(({ part }) => part >= from && part <= to);
  const [after, end] = [within(WARM_UP, WARM_UP + WINDOW), within(1 - WINDOW, 1)];
  if (after.length === 0 || end.length === 0) throw new Error(`too few samples: ${samples.length}`);
  return Object.keys(samples[0].values).map((name) => {
    const [before, last] = [after, end].map((some) => summary(some.map(({ values }) => values[name])).median);
    const room = Math.max(before * TOLERANCE, slack[name] ?? 0);
    return { name, after: before, end: last, grew: last > before + room };
  });
}
