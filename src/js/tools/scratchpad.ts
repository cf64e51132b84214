import { invalidInput } from "../error.js";
import { type Tool, tool } from "../tool.js";

/** The most keys of a scratchpad. */
const MAX_KEYS = 1_000;
/** The longest key, in UTF-16 units. */
const MAX_KEY = 200;
/** The longest value, in UTF-16 units. */
const MAX_VALUE = 100_000;
/** The longest that all values are together, in UTF-16 units. */
const MAX_TOTAL = 2_000_000;

/**
 * Texts by key, for agents to leave notes to themselves and to each other: give one scratchpad to several agents, and they
 * share it. It holds at most 1000 keys of 200 characters, and values of 100 000 characters, 2 000 000 together.
 */
export class Scratchpad {
  readonly #values = new Map<string, string>();
  #total = 0;

  /**
   * An empty one, or one as it was saved.
   *
   * @param saved what `toJSON()` gave.
   */
  constructor(saved: Readonly<Record<string, string>> = {}) {
    for (const [key, value] of Object.entries(saved)) {
      if (typeof value !== "string") throw invalidInput("a saved scratchpad is an object of texts");
      this.set(key, value);
    }
  }

  /** The note of that name. */
  get(key: string): string | undefined {
    return this.#values.get(key);
  }

  /** @throws Error with a message for the model when a limit is reached. */
  set(key: string, value: string): void {
    if (key === "" || key.length > MAX_KEY) throw new Error(`a key has 1 to ${MAX_KEY} characters`);
    if (value.length > MAX_VALUE)
      throw new Error(`the value has ${value.length} characters, and may have ${MAX_VALUE}: shorten it`);
    const old = this.#values.get(key);
    if (old === undefined && this.#values.size >= MAX_KEYS)
      throw new Error(`there are ${MAX_KEYS} keys already: delete some first`);
    const total = this.#total - (old?.length ?? 0) + value.length;
    if (total > MAX_TOTAL) throw new Error("the scratchpad is full: delete or shorten values first");
    this.#values.set(key, value);
    this.#total = total;
  }

  /** Whether there was such a key. */
  delete(key: string): boolean {
    this.#total -= this.#values.get(key)?.length ?? 0;
    return this.#values.delete(key);
  }

  /** The keys, in the order they were first set. */
  keys(): string[] {
    return [...this.#values.keys()];
  }

  /** All of it, to be saved. */
  toJSON(): Record<string, string> {
    return Object.fromEntries(this.#values);
  }
}

/** The tools of a scratchpad. */
export interface ScratchpadTools {
  readonly readScratchpad: Tool<{ key?: string }, string>;
  readonly writeScratchpad: Tool<{ key: string; value?: string }, string>;
}

/** Tools to read and write a scratchpad. */
export function scratchpadTools(pad: Scratchpad = new Scratchpad()): ScratchpadTools {
  return {
    readScratchpad: tool({
      description: "Read a note from the shared scratchpad, or list the keys of all notes.",
      input: {
        type: "object",
        properties: { key: { type: "string", description: "The note wanted. Without it: all keys" } },
        additionalProperties: false,
      },
      repeatable: true,
      execute: ({ key }) => {
        const value = key === undefined ? undefined : pad.get(key);
        if (value !== undefined) return value;
        const keys = pad.keys().map((name) => `${name} (${pad.get(name)?.length} characters)`);
        const told = keys.length === 0 ? "[the scratchpad is empty]" : keys.join("\n");
        if (key === undefined) return told;
        throw new Error(`there is no note ${JSON.stringify(key)}. There are:\n${told}`);
      },
    }),
    writeScratchpad: tool({
      description: "Write a note to the shared scratchpad, in the place of what stood under its key, or delete it.",
      input: {
        type: "object",
        properties: {
          key: { type: "string", description: "A short name for the note" },
          value: { type: "string", description: "The note. Without it: the key is deleted" },
        },
        required: ["key"],
        additionalProperties: false,
      },
      sequential: true,
      execute: ({ key, value }) => {
        if (value !== undefined) {
          pad.set(key, value);
          return `wrote ${JSON.stringify(key)}`;
        }
        if (!pad.delete(key)) throw new Error(`there is no note ${JSON.stringify(key)}`);
        return `deleted ${JSON.stringify(key)}`;
      },
    }),
  };
}
