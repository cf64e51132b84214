// What a run prints: the machine, tables that docs/performance.md can take over, and the targets that were missed.
import { readFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";

/** The targets of all areas, by area and figure: each a limit that a measured number has to stay below or at. */
export const targets = JSON.parse(readFileSync(new URL("../targets.json", import.meta.url), "utf8"));

/** A line that says what was measured on. */
export function machine() {
  const [cpu] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} cores (${cpu.model.trim()}), ${memory} GiB, ${process.platform} ${release()}, Node ${process.version}`;
}

/**
 * A Markdown table with aligned columns.
 *
 * @param {string[]} heads
 * @param {string[][]} rows
 */
export function table(heads, rows) {
  const widths = heads.map((head, column) =>
    Math.max(...[head, ...rows.map((row) => row[column])].map((cell) => cell.length)),
  );
  const line = (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  return [line(heads), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

/**
 * Compares what was measured of crablet with the targets of an area.
 *
 * @param {Record<string, number>} limits by figure
 * @param {Record<string, number | undefined>} measured by figure
 * @returns {string[]} a line for each target
 */
export function compare(limits, measured) {
  return Object.entries(limits).map(([figure, limit]) => {
    const number = measured[figure];
    if (number === undefined) return `not measured: ${figure} (target ${limit})`;
    const verdict = number <= limit ? "met" : "MISSED";
    return `${verdict}: ${figure} ${number.toFixed(2)} (target ${limit})`;
  });
}
