import type { FilePart, TextPart } from "../message.js";
import type { SessionSnapshot } from "../session.js";

/** The most runs that wait for their callers: those that are forgotten first go on from what the caller sends. */
const MAX_SUSPENDED = 1000;

type Content = readonly (TextPart | FilePart)[];

/** A run that waited, and the results that let it go on. */
export interface Resumed {
  readonly saved: SessionSnapshot;
  readonly results: ReadonlyMap<string, Content>;
}

/**
 * Runs that wait for results of their callers, by ids that nobody can guess. Each goes on once. In it are the results of the
 * agent's own tools, which the caller does not have: without it they would run again.
 */
export class Suspended {
  readonly #kept = new Map<string, { readonly callIds: readonly string[]; readonly saved: SessionSnapshot }>();

  keep(key: string, callIds: readonly string[], saved: SessionSnapshot): void {
    this.#kept.set(key, { callIds, saved });
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MAX_SUSPENDED) break;
      this.#kept.delete(oldest);
    }
  }

  /** The run that these results are for, when they are all of its results. */
  take(results: ReadonlyMap<string, Content>): Resumed | undefined {
    const key = keyOf(results.keys().next().value ?? "");
    const kept = this.#kept.get(key);
    if (kept === undefined || results.size !== kept.callIds.length) return undefined;
    const own = new Map<string, Content>();
    for (const [index, callId] of kept.callIds.entries()) {
      const content = results.get(callName(key, index));
      if (content === undefined) return undefined;
      own.set(callId, content);
    }
    this.#kept.delete(key);
    return { saved: kept.saved, results: own };
  }
}

/** What the caller knows a call by. */
export const callName = (key: string, index: number): string => `call_${key}_${index}`;

const keyOf = (name: string): string => /^call_([0-9a-f]{32})_\d+$/.exec(name)?.[1] ?? "";
