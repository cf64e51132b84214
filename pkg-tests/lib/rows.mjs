// The rows of a matrix: the same check in one runtime or bundler after the other, with a line for each.

/**
 * Runs the rows in turn, prints `  ok NAME (seconds): what it saw` or `  FAILED NAME (seconds)` with the error, and goes on after
 * a failure.
 *
 * @param {Record<string, () => Promise<string>>} rows each gives a few words about what it saw, or throws
 * @returns {Promise<string>} how many there were
 * @throws when a row failed, with the names of those that did
 */
export async function runRows(rows) {
  const failed = [];
  for (const [name, row] of Object.entries(rows)) {
    const started = performance.now();
    const seconds = () => `${((performance.now() - started) / 1000).toFixed(1)} s`;
    try {
      const seen = await row();
      console.log(`  ok ${name} (${seconds()}): ${seen}`);
    } catch (error) {
      failed.push(name);
      console.log(`  FAILED ${name} (${seconds()})\n${error.stack ?? error}`);
    }
  }
  if (failed.length > 0) throw new Error(`failed: ${failed.join(", ")}`);
  return `${Object.keys(rows).length} rows`;
}

/**
 * @param {string} answer what a smoke conversation reported
 * @param {string} expected one of `smoke/expected.mjs`
 * @param {string} [output] what else there is to see when it is not the same
 */
export function expectAnswer(answer, expected, output = "") {
  if (answer !== expected) throw new Error(`not the answer: ${answer}\n${output}`);
}
