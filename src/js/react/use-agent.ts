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
  const begin = (): Held<T> => {
    const made = typeof agent === "function" ? agent() : agent;
    return { given: agent, agent: made, isOwn: made !== agent, session: made.session(saved) };
  };
  const [first, setHeld] = useState(begin);
  let held = first;
  // A function is another one at each render, and means the same.
  if (typeof agent !== "function" && held.given !== agent) {
    held = begin();
    setHeld(held);
  }
  useEnd(held);
  return useSession(held.session, options);
}

interface Held<T extends ToolSet> {
  readonly given: unknown;
  readonly agent: Agent<T>;
  readonly isOwn: boolean;
  readonly session: Session<T>;
}

/** Ends what a component holds when it goes. Strict mode mounts it twice in one turn, which is no end. */
function useEnd(held: Held<any>): void {
  const mounted = useRef<Held<any> | undefined>(undefined);
  useEffect(() => {
    mounted.current = held;
    return () => {
      mounted.current = undefined;
      queueMicrotask(() => {
        if (mounted.current === held) return;
        held.session.abort();
        if (held.isOwn) void held.agent.close();
      });
    };
  }, [held]);
}
