import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import type { Input } from "../message.js";
import type { RunOptions } from "../options.js";
import type { Run } from "../run.js";
import type { Session, SessionState } from "../session.js";
import type { ToolSet } from "../tool.js";
import { type ClientTools, performClientCalls } from "./client-calls.js";

export type { ClientTools };

/** How a component uses a session. */
export interface UseSessionOptions {
  /** What performs the client-side tools, for as long as the component is mounted. */
  readonly clientTools?: ClientTools;
}

/** A session as a component sees it: its state, and what can be done with it. The functions stay the same. */
export interface UsedSession<T extends ToolSet = ToolSet> extends SessionState {
  readonly session: Session<T>;
  /** Starts a run. It goes on by itself; to read its events is possible and not needed. */
  send(input: Input, options?: RunOptions): Run<T, unknown>;
  /** Decides about a call that waits for an approval, and goes on. */
  approve(callId: string, allow?: boolean, reason?: string): void;
  /** Gives the result of a client-side tool, and goes on. */
  toolResult(callId: string, output: unknown): void;
  /** Goes on with the run of a restored session. */
  resume(): void;
  /** Stops the run that is at work, if there is one. */
  stop(reason?: unknown): void;
}

/**
 * Follows a session: renders again when its state changes. A run goes on without a reader then. The session stays as it is when
 * the component goes; it is of whoever made it.
 */
export function useSession<T extends ToolSet>(
  session: Session<T>,
  { clientTools = NONE }: UseSessionOptions = {},
): UsedSession<T> {
  // On the server and for the first render in the page it is the same: what the session was made of.
  const state = useSyncExternalStore(session.subscribe, session.getState, session.getState);
  const latest = useRef(clientTools);
  useEffect(() => {
    latest.current = clientTools;
  });
  useEffect(() => performClientCalls(session, () => latest.current), [session]);
  const actions = useMemo(() => actionsOf(session), [session]);
  return useMemo(() => ({ ...state, ...actions }), [state, actions]);
}

const NONE: ClientTools = {};

function actionsOf<T extends ToolSet>(session: Session<T>): Omit<UsedSession<T>, keyof SessionState> {
  return {
    session,
    send: (input, options = {}) => session.send(input, options) as Run<T, unknown>,
    approve(callId, allow, reason) {
      session.approve(callId, allow, reason);
      session.resume();
    },
    toolResult(callId, output) {
      session.toolResult(callId, output);
      session.resume();
    },
    resume: () => void session.resume(),
    stop: (reason) => session.abort(reason),
  };
}
