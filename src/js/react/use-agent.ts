import { useEffect, useRef, useState } from "react";
import type { Agent } from "../agent.js";
import type { Session, SessionSnapshot } from "../session.js";
import type { ToolSet } from "../tool.js";
import { type UsedSession, useSession, type UseSessionOptions } from "./use-session.js";

/** How a component uses an agent. */
export interface UseAgentOptions extends UseSessionOptions {
  /** The conversation to begin with. Read when the component is mounted, and when the agent changes. */
  readonly saved?: SessionSnapshot;
}

/**
 * A conversation of a component with an agent. The run at work is aborted when the component goes.
 *
 * @param agent one that is made outside of the component, or a function that makes it: then it is made once, and closed when the
 *   component goes. With another agent begins another conversation.
 */
export function useAgent<T extends ToolSet>(
  agent: Agent<T> | (() => Agent<T>),
  { saved, ...options }: UseAgentOptions = {},
): UsedSession<T> {
  const begin = (from = saved): Held<T> => {
    const made = typeof agent === "function" ? agent() : agent;
    return { given: agent, agent: made, isOwn: made !== agent, session: made.session(from), isClosed: false };
  };
  const [first, setHeld] = useState(() => begin());
  let held = first;
  // A function is another one at each render, and means the same.
  if (typeof agent !== "function" && held.given !== agent) {
    held = begin();
    setHeld(held);
  }
  useEnd(held, () => setHeld(begin(held.session.toJSON())));
  return useSession(held.session, options);
}

interface Held<T extends ToolSet> {
  readonly given: unknown;
  readonly agent: Agent<T>;
  readonly isOwn: boolean;
  readonly session: Session<T>;
  isClosed: boolean;
}

/**
 * Ends what a component holds when it goes. Strict mode mounts it twice in one turn, which is no end. One that comes back with its
 * state, since React only hid it (`<Activity>`), begins again where it was.
 */
function useEnd(held: Held<any>, beginAgain: () => void): void {
  const mounted = useRef<Held<any> | undefined>(undefined);
  const latest = useRef(beginAgain);
  useEffect(() => {
    latest.current = beginAgain;
  });
  useEffect(() => {
    mounted.current = held;
    if (held.isClosed) latest.current();
    return () => {
      mounted.current = undefined;
      queueMicrotask(() => {
        if (mounted.current === held) return;
        held.session.abort();
        if (!held.isOwn) return;
        held.isClosed = true;
        void held.agent.close();
      });
    };
  }, [held]);
}
