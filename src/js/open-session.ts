import { CrabletError, type ErrorInfo } from "./error.js";
import type { Session } from "./session.js";

/** @internal Whether a run of the session is not finished, and nothing works on it. */
export const isOpen = (session: Session<any>): boolean =>
  ["interrupted", "awaiting-approval", "awaiting-result"].includes(session.getState().status);

/** @internal Ends a run that waits, because the user went on with something else. It has to have begun to be told so. */
export async function abandon(session: Session<any>): Promise<void> {
  const run = session.resume();
  if (run === undefined) return;
  try {
    for await (const _event of run) run.abort(new CrabletError(ABANDONED));
  } catch {
    // However it ended, it is over; what is wrong with the session the prompt will say.
  }
}

const ABANDONED: ErrorInfo = { kind: "aborted", message: "the user went on with another message", retryable: false };
