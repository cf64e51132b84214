import { CrabletError } from "./error.js";

/**
 * Keeps conversations, each under an id of the caller's choice.
 *
 * What is kept of a conversation is a list of entries, each a line of JSON without a line feed. Entries are added to it, and
 * now and then the list is replaced by a shorter one that says the same. It has a version, which grows by one with each
 * write and is 0 while there is nothing. Each write names the version it builds on, so that of two writers of one
 * conversation the second is refused and changes nothing: its run ends with an error of kind `conflict`.
 *
 * A store of your own throws `conflict(id, expectedVersion)` for that. Everything else that it throws ends the run that was to
 * be saved with an error of kind `storage`.
 */
export interface SessionStore {
  /** What is kept; `undefined` when there is nothing. */
  read(id: string): Promise<StoredSession | undefined>;
  /** Adds entries, all of them or none. Resolves with the new version once they survive a crash. */
  append(id: string, expectedVersion: number, entries: readonly string[]): Promise<number>;
  /** Keeps these entries in the place of what is kept, in one step. From version 0 it begins a conversation. */
  replace(id: string, expectedVersion: number, base: readonly string[]): Promise<number>;
  /** Forgets a conversation; nothing happens when there is none. */
  delete(id: string): Promise<void>;
  /** The ids of all conversations, sorted. */
  list(): Promise<readonly string[]>;
}

/** What a store keeps of a conversation. */
export interface StoredSession {
  readonly version: number;
  readonly entries: readonly string[];
}

/** The error of a write whose expected version is not the one that is kept. */
export function conflict(id: string, expectedVersion: number): CrabletError {
  return new CrabletError({
    kind: "conflict",
    message:
      `the session ${JSON.stringify(id)} was written by somebody else since version ${expectedVersion}: open it again to ` +
      "go on from what they wrote",
  });
}

/** @internal A failure of a store as an error of kind `storage`, unless it says its kind itself. */
export function storageError(thrown: unknown, doing: string): CrabletError {
  if (CrabletError.is(thrown)) return thrown;
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  return new CrabletError({ kind: "storage", message: `${doing}: ${reason}` }, { cause: thrown });
}
