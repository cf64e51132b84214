import type { Agent } from "../agent.js";
import { withCallersTools } from "../callers-tools.js";
import { CrabletError, messageOf } from "../error.js";
import { readJson } from "../http-body.js";
import { abandon, isOpen } from "../open-session.js";
import type { Run } from "../run.js";
import type { Session } from "../session.js";
import { type MaybePromise, toolOutput } from "../tool.js";
import type { AgUiEvent } from "./events.js";
import { type AgUiInput, agUiInputOf, contentOf, fieldsOf, refusal } from "./input.js";
import { type AgUiOptions, type AgUiRun, AgUiWriter } from "./writer.js";

/** What a handler of AG-UI is made of. */
export interface AgUiHandlerOptions extends AgUiOptions {
  readonly agent: Agent<any>;
  /**
   * The session of a thread, of the agent that is given: it has the client's tools too. The client chooses the id, so look whether
   * the thread is one of whoever asks; a `Response` is sent as it is.
   */
  readonly session: (agent: Agent<any>, threadId: string, request: Request) => MaybePromise<Session<any> | Response>;
  /** The most bytes of a request. Default: 32 MiB. */
  readonly maxBytes?: number;
}

/**
 * A handler of HTTP requests for clients of AG-UI. The session is what was said: of the messages of a request only the last ones
 * are read. A user's message is the prompt. Results of tools count for calls of client-side tools that wait in the session, and what is
 * answered to interrupts for calls that wait for an approval; anything else is refused with 400 or 409.
 *
 * A prompt that comes while calls wait ends them. Tools of the client may not have the name of one of the agent's.
 */
export function agUiHandler(options: AgUiHandlerOptions): (request: Request) => Promise<Response> {
  const { agent, session: sessionOf, maxBytes = 32 * 1024 * 1024, ...rest } = options;
  return async (request) => {
    let own: Agent<any> | undefined;
    try {
      if (request.method !== "POST") throw refusal(405, "a run of AG-UI is posted");
      const input = agUiInputOf(await readJson(request, maxBytes));
      own = await withCallersTools(agent, input.tools, request.signal);
      const session = await sessionOf(own, input.threadId, request);
      if (session instanceof Response) return session;
      const run = await answer(session, input, request.signal);
      const closing = own;
      own = undefined;
      return eventResponse(agUiEvents(run, input, rest, () => closing.close()));
    } catch (thrown) {
      const status = statusOf(thrown);
      if (status === undefined) throw thrown;
      return new Response(messageOf(thrown), { status, headers: { "content-type": "text/plain; charset=utf-8" } });
    } finally {
      await own?.close();
    }
  };
}

/** The events of a run as events of AG-UI. The stream ends when the run ends or waits; cancelling it aborts the run. */
export function toAgUiEvents(run: Run<any, any>, of: AgUiRun, options: AgUiOptions = {}): ReadableStream<AgUiEvent> {
  return agUiEvents(run, of, options, async () => {});
}

function agUiEvents(
  run: Run<any, any>,
  of: AgUiRun,
  options: AgUiOptions,
  over: () => Promise<void>,
): ReadableStream<AgUiEvent> {
  const writer = new AgUiWriter(of, options);
  const reader = run.toReadableStream({ untilSuspended: true }).getReader();
  let isSuspended = false;
  const next = async (): Promise<{ events: AgUiEvent[]; isLast: boolean }> => {
    try {
      const { done, value } = await reader.read();
      if (done) return { events: isSuspended ? writer.suspend() : [], isLast: true };
      isSuspended = value.type === "run-suspended";
      return { events: writer.write(value), isLast: false };
    } catch (thrown) {
      return { events: writer.fail(thrown), isLast: true };
    }
  };
  return new ReadableStream<AgUiEvent>(
    {
      async pull(controller) {
        for (;;) {
          const { events, isLast } = await next();
          for (const event of events) controller.enqueue(event);
          if (isLast) {
            controller.close();
            await over();
          }
          if (isLast || events.length > 0) return;
        }
      },
      async cancel(reason) {
        await reader.cancel(reason);
        await over();
      },
    },
    { highWaterMark: 0 },
  );
}

function eventResponse(events: ReadableStream<AgUiEvent>): Response {
  const encoder = new TextEncoder();
  const lines = new TransformStream<AgUiEvent, Uint8Array>({
    transform: (event, controller) => controller.enqueue(encoder.encode(`data: ${JSON.stringify(event)}\n\n`)),
  });
  return new Response(events.pipeThrough(lines), {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache, no-transform" },
  });
}

async function answer(session: Session<any>, input: AgUiInput, signal: AbortSignal): Promise<Run<any, any>> {
  if (session.getState().status === "running") throw refusal(409, "this thread is being answered already");
  const last = input.messages.at(-1);
  if (input.resume.length === 0 && last?.role === "user") {
    const prompt = contentOf(last.content);
    if (prompt.length === 0) throw refusal(400, "the message is empty");
    if (isOpen(session)) await abandon(session);
    return session.send(prompt, { signal });
  }
  const decisions = [...answered(session, input), ...performed(session, input)];
  if (decisions.length === 0) throw refusal(409, "nothing waits in this thread for what was posted");
  for (const decide of decisions) decide();
  const run = session.resume({ signal });
  if (run === undefined) throw refusal(409, "nothing waits in this thread");
  return run;
}

/** What was answered to interrupts. */
function answered(session: Session<any>, { resume }: AgUiInput): (() => void)[] {
  const { pending } = session.getState();
  return resume.map(({ interruptId: id, status, payload }) => {
    if (!pending.some(({ callId }) => callId === id)) throw refusal(400, `no call waits for an answer to ${id}`);
    const { approved, reason } = fieldsOf(payload);
    if (status === "cancelled") return () => session.approve(id, false);
    if (status !== "resolved" || typeof approved !== "boolean")
      throw refusal(400, `the answer to ${id} does not say whether it is approved`);
    return () => session.approve(id, approved, typeof reason === "string" ? reason : undefined);
  });
}

/** The results of calls of client-side tools: the messages that come last. */
function performed(session: Session<any>, { messages }: AgUiInput): (() => void)[] {
  const { clientCalls, pending } = session.getState();
  const decisions: (() => void)[] = [];
  for (const message of [...messages].reverse()) {
    if (message.role !== "tool") break;
    const { toolCallId = "", content } = message;
    const { error } = fieldsOf(message);
    if (pending.some(({ callId }) => callId === toolCallId))
      throw refusal(400, `the call ${toolCallId} waits for an approval and for nothing else`);
    // Those of the agent's own tools the client was told; they are not read.
    if (!clientCalls.some(({ callId }) => callId === toolCallId)) continue;
    const output = { content: contentOf(content) as never, isError: typeof error === "string" };
    decisions.push(() => session.toolResult(toolCallId, toolOutput(output)));
  }
  return decisions;
}

/** The status that says what is wrong with a request; `undefined` when it is not the request's fault. */
function statusOf(thrown: unknown): number | undefined {
  if (!CrabletError.is(thrown)) return undefined;
  if (thrown.kind === "busy") return 409;
  return thrown.kind === "invalid-input" || thrown.kind === "conflict" ? thrown.status : undefined;
}
