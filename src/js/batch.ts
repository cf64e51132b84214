import type { CoreBatch } from "./core.js";
import type { AgentEvent } from "./event.js";

/** The kinds of a table row; `src/bindings/src/batch.rs` writes them. */
const OTHER = 0;
const TEXT = 1;
const REASONING = 2;

/**
 * Makes events of the batches of one run.
 *
 * @internal
 */
export class BatchDecoder {
  #runId = "";
  #step = 0;
  readonly #calls = new Map<string, string>();

  decode([text, table, others]: CoreBatch): AgentEvent[] {
    const rest = others === undefined ? [] : (JSON.parse(others) as AgentEvent[]);
    const events: AgentEvent[] = [];
    let position = 0;
    let taken = 0;
    for (let row = 0; row + 2 < table.length; row += 3) {
      const kind = table[row];
      if (kind === OTHER) {
        const event = rest[taken++];
        if (event !== undefined) events.push(this.#other(event));
        continue;
      }
      const id = String(table[row + 1]);
      const end = position + (table[row + 2] ?? 0);
      const delta = text.slice(position, end);
      position = end;
      const runId = this.#runId;
      const step = this.#step;
      if (kind === TEXT) events.push({ type: "text-delta", runId, step, id, delta });
      else if (kind === REASONING) events.push({ type: "reasoning-delta", runId, step, id, delta });
      else events.push({ type: "tool-input-delta", runId, step, id, callId: this.#calls.get(id) ?? "", delta });
    }
    return events;
  }

  /** Deltas carry no run, step or call of their own: those of the events before them hold. */
  #other(event: AgentEvent): AgentEvent {
    this.#runId = event.runId;
    this.#step = event.step;
    if (event.type === "tool-input-start") this.#calls.set(event.id, event.callId);
    if (event.type === "tool-input-end") return { ...event, callId: this.#calls.get(event.id) ?? "" };
    return event;
  }
}
