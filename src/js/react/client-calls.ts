import { messageOf } from "../error.js";
import type { ToolCall } from "../event.js";
import type { Session } from "../session.js";
import { type MaybePromise, toolOutput } from "../tool.js";

/** What performs the client-side tools, by their names. What it throws is told to the model as a failed result. */
export type ClientTools = Readonly<
  Record<
    string,
    (input: any, context: { readonly callId: string; readonly signal: AbortSignal }) => MaybePromise<unknown>
  >
>;

/**
 * Performs each call of a client-side tool that waits in a session, once, and goes on with the run.
 *
 * @param tools asked for at each call, so that it may change.
 * @returns what ends it; calls at work are aborted and stay open.
 *
 * @internal
 */
export function performClientCalls(session: Session<any>, tools: () => ClientTools): () => void {
  const atWork = new Map<string, AbortController>();
  const perform = async (call: ToolCall, signal: AbortSignal): Promise<void> => {
    // React's strict mode runs an effect, ends it and runs it again in one turn: the first time nothing shall happen.
    await Promise.resolve();
    const tool = tools()[call.toolName];
    if (signal.aborted || tool === undefined) return;
    let output: unknown;
    try {
      output = await tool(call.input, { callId: call.callId, signal });
    } catch (thrown) {
      output = toolOutput({ content: messageOf(thrown), isError: true });
    }
    if (signal.aborted) return;
    session.toolResult(call.callId, output);
    session.resume();
  };
  const look = (): void => {
    const { clientCalls } = session.getState();
    for (const [callId, controller] of atWork) {
      if (clientCalls.some((call) => call.callId === callId)) continue;
      atWork.delete(callId);
      controller.abort(new DOMException("The call does not wait any more", "AbortError"));
    }
    for (const call of clientCalls) {
      if (atWork.has(call.callId) || tools()[call.toolName] === undefined) continue;
      const controller = new AbortController();
      atWork.set(call.callId, controller);
      perform(call, controller.signal).catch((thrown) => {
        console.error(`crablet: the result of ${call.toolName} could not be given`, thrown);
      });
    }
  };
  const end = session.subscribe(look);
  look();
  return () => {
    end();
    for (const controller of atWork.values()) controller.abort(new DOMException("The component is gone", "AbortError"));
  };
}
