import { toJson } from "./json.js";
import type { ModelChunk, ModelFunction, ModelRequest } from "./model.js";
import { ownTurn } from "./own-turn.js";

/** @internal The events of one answer of a function, pulled by the module: JSON text of a list, or `undefined` at the end. */
export interface ModelAnswer {
  next(): Promise<string | undefined>;
  /** The answer is no longer wanted. */
  cancel(): void;
}

/** @internal */
export function answerOf(model: ModelFunction, requestText: string): ModelAnswer {
  const controller = new AbortController();
  const blocks = new Blocks();
  let iterator: AsyncIterator<ModelChunk> | Iterator<ModelChunk> | undefined;
  return {
    async next() {
      if (blocks.isOver) return undefined;
      await ownTurn();
      if (iterator === undefined) {
        const answer = await model(JSON.parse(requestText) as ModelRequest, { signal: controller.signal });
        iterator = Symbol.asyncIterator in answer ? answer[Symbol.asyncIterator]() : answer[Symbol.iterator]();
      }
      const { done, value } = await iterator.next();
      return toJson(done ? blocks.stop(undefined) : blocks.take(value), "what the model function yielded");
    },
    cancel() {
      controller.abort(new DOMException("The model call was cancelled", "AbortError"));
      // The function's own clean-up may fail or hang; nobody waits for it any more.
      void Promise.resolve(iterator?.return?.()).catch(() => {});
    },
  };
}

type ModelEvent = Record<string, unknown>;

/** Numbers the blocks of an answer, and closes each before the next begins. */
class Blocks {
  isOver = false;
  #open: "text" | "reasoning" | undefined;
  #next = 0;
  #calls = 0;

  take(chunk: ModelChunk): ModelEvent[] {
    if (typeof chunk === "string") return this.#delta("text", chunk);
    switch (chunk?.type) {
      case "text-delta":
        return this.#delta("text", chunk.delta);
      case "reasoning-delta":
        return this.#delta("reasoning", chunk.delta);
      case "tool-call": {
        const events = this.#close();
        const block = this.#next++;
        const id = chunk.callId ?? `call_${this.#calls}`;
        this.#calls += 1;
        const json = chunk.inputText ?? toJson(chunk.input ?? {}, `the input of ${chunk.toolName}`);
        events.push({ type: "tool-input-start", block, id, name: chunk.toolName });
        if (json !== "") events.push({ type: "tool-input-delta", block, json });
        events.push({ type: "tool-input-end", block });
        return events;
      }
      case "stop":
        return this.stop(chunk.reason);
      default:
        // The module refuses what is no chunk: a part of the answer would be missing.
        return [{ ...chunk }];
    }
  }

  stop(reason: string | undefined): ModelEvent[] {
    this.isOver = true;
    return [...this.#close(), { type: "stop", reason: reason ?? (this.#calls > 0 ? "tool-use" : "stop") }];
  }

  #delta(kind: "text" | "reasoning", text: string): ModelEvent[] {
    if (text === "") return [];
    const events: ModelEvent[] = [];
    if (this.#open !== kind) {
      events.push(...this.#close(), { type: `${kind}-start`, block: this.#next });
      this.#open = kind;
    }
    events.push({ type: `${kind}-delta`, block: this.#next, text });
    return events;
  }

  #close(): ModelEvent[] {
    if (this.#open === undefined) return [];
    const type = `${this.#open}-end`;
    this.#open = undefined;
    return [{ type, block: this.#next++ }];
  }
}
