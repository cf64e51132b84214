import { entriesOf, isWhole } from "./saved-text.js";
import { type SessionStore, storageError } from "./store.js";

/**
 * Where a conversation is kept in a store.
 *
 * @internal
 */
export class Place {
  readonly #store: SessionStore;
  readonly #id: string;
  #version: number;
  /** Lines that the next write takes with it. */
  #kept = "";
  /** Whether something is missing in the store. */
  #isBehind = false;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(store: SessionStore, id: string, version: number) {
    this.#store = store;
    this.#id = id;
    this.#version = version;
  }

  /** Has the next write put these lines before its own. */
  keep(lines: string): void {
    this.#kept = isWhole(lines) ? lines : this.#kept + lines;
  }

  /**
   * Writes lines behind all that were written before; `whole` gives the text that ends with them.
   *
   * @throws CrabletError `conflict` when somebody else wrote the conversation, `storage` for everything else.
   */
  write(lines: string, whole: () => string): Promise<void> {
    const all = isWhole(lines) ? lines : this.#kept + lines;
    this.#kept = "";
    const writing = this.#turn.then(() => this.#write(all, whole));
    this.#turn = writing.catch(() => {});
    return writing;
  }

  async #write(lines: string, whole: () => string): Promise<void> {
    try {
      const isAdded = this.#version > 0 && !this.#isBehind && !isWhole(lines);
      this.#version = isAdded
        ? await this.#store.append(this.#id, this.#version, entriesOf(lines))
        : await this.#store.replace(this.#id, this.#version, entriesOf(whole()));
      this.#isBehind = false;
    } catch (thrown) {
      this.#isBehind = true;
      throw storageError(thrown, `the session ${JSON.stringify(this.#id)} could not be written`);
    }
  }
}
