// The line to the harness (`pkg-tests/faults/src/node.rs`): lines of JSON in both directions, `{ ask: id, what, … }` and
// `{ answer: id, value }`.
import { createInterface } from "node:readline";

const waiting = new Map();
let last = 0;

/** Asks the harness. */
export function ask(what, question) {
  last += 1;
  const id = last;
  process.stdout.write(`${JSON.stringify({ ask: id, what, ...question })}\n`);
  return new Promise((resolve) => waiting.set(id, resolve));
}

/** Answers what the harness asks, with functions by the names of the questions, until it ends. */
export function serve(functions) {
  const lines = createInterface({ input: process.stdin });
  lines.on("line", async (line) => {
    const { ask: id, answer, value, what, ...question } = JSON.parse(line);
    if (answer !== undefined) {
      waiting.get(answer)(value);
      waiting.delete(answer);
      return;
    }
    const found = await functions[what](question);
    process.stdout.write(`${JSON.stringify({ answer: id, value: found ?? null })}\n`);
  });
  lines.on("close", () => process.exit());
}
