import type { Agent } from "../agent.js";
import { withCallersTools } from "../callers-tools.js";
import { CrabletError, type ErrorInfo } from "../error.js";
import type { AgentEvent } from "../event.js";
import { readJson } from "../http-body.js";
import { StepFilter } from "../step-filter.js";
import { type MaybePromise, toolOutput } from "../tool.js";
import { conversationOf, resultsOf } from "./history.js";
import { badRequest, type CompletionRequest, completionRequestOf } from "./request.js";
import { Suspended } from "./suspended.js";
import { CompletionWriter } from "./writer.js";

/** An agent that is served, or a function that says which it is for a request. A `Response` is sent as it is. */
export type ServedAgent = Agent<any> | ((request: Request) => MaybePromise<Agent<any> | Response>);

/** What a handler of Chat Completions serves. */
export interface ChatCompletionsOptions {
  /** The agents by the names that callers give as `model`. */
  readonly models: Readonly<Record<string, ServedAgent>>;
  /**
   * Tells of a step once the model has finished it, so that an attempt that fails can be followed by another. Without it, a
   * streamed answer that breaks off after some of its text was sent ends with an error: this wire takes nothing back. Default: false.
   */
  readonly bufferSteps?: boolean;
  /** What a caller is told of an error. Default: its kind, since a message may name accounts and addresses. */
  readonly errorText?: (error: ErrorInfo) => string;
  /** The most bytes of a request. Default: 32 MiB. */
  readonly maxBytes?: number;
}

/**
 * A handler of HTTP requests that serves agents over OpenAI's Chat Completions: `POST …/chat/completions`, streamed or not,
 * `GET …/models` and `GET …/models/NAME`. It asks nobody who they are: look at the key in front of it.
 *
 * The agent's own tools run here, unseen. Those of the caller are offered to the model beside them; calling one ends the answer with
 * `tool_calls`, and the caller's results let the same run go on. A caller's tool may not have the name of one of the agent's. A call that
 * needs an approval is denied unless the agent has an `approve`.
 */
export function chatCompletionsHandler(options: ChatCompletionsOptions): (request: Request) => Promise<Response> {
  const suspended = new Suspended();
  const { models, errorText = ({ kind }: ErrorInfo) => `the answer failed (${kind})`, maxBytes = MAX_BYTES } = options;
  return async (request) => {
    const { pathname } = new URL(request.url);
    try {
      if (request.method === "GET" && pathname.endsWith("/models"))
        return Response.json({ object: "list", data: Object.keys(models).map(modelOf) });
      const named = Object.keys(models).find((name) => pathname.endsWith(`/models/${encodeURIComponent(name)}`));
      if (request.method === "GET" && named !== undefined) return Response.json(modelOf(named));
      if (request.method !== "POST" || !pathname.endsWith("/chat/completions"))
        throw new CrabletError({ kind: "invalid-input", status: 404, message: "there is nothing at this address" });
      const asked = completionRequestOf(await readJson(request, maxBytes));
      const served = Object.hasOwn(models, asked.model) ? models[asked.model] : undefined;
      if (served === undefined)
        throw new CrabletError({ kind: "invalid-input", status: 404, message: `there is no model ${asked.model}` });
      const agent = typeof served === "function" ? await served(request) : served;
      if (agent instanceof Response) return agent;
      const answering = await begin(agent, asked, request.signal, suspended);
      const writer = new CompletionWriter(asked.model, answering.key, asked.tools, errorText);
      return asked.isStreamed
        ? await streamed(answering, writer, asked, options.bufferSteps === true)
        : await whole(answering, writer);
    } catch (thrown) {
      if (!CrabletError.is(thrown)) throw thrown;
      // What is wrong with the request has a status already.
      const isRefused = thrown.kind === "invalid-input" && thrown.status !== undefined;
      return isRefused
        ? errorResponse(thrown, thrown.status ?? 400, thrown.message)
        : errorResponse(thrown, STATUSES[thrown.kind] ?? 502, errorText(thrown));
    }
  };
}

const MAX_BYTES = 32 * 1024 * 1024;

/** A run that answers. */
interface Answering {
  /** Its events, until it ends or waits. */
  readonly events: ReadableStreamDefaultReader<AgentEvent>;
  /** Names what waits when the run ends with calls of the caller's tools. */
  readonly key: string;
  /** Keeps the run when it waits for the caller, and lets go of the agent. */
  end(): Promise<void>;
}

async function begin(
  served: Agent<any>,
  asked: CompletionRequest,
  signal: AbortSignal,
  suspended: Suspended,
): Promise<Answering> {
  // Read even where the run is still there: what is wrong with a request does not depend on that.
  const { instructions, saved } = conversationOf(asked.messages);
  const kept = suspended.take(resultsOf(asked.messages));
  const agent = await withCallersTools(served, asked.tools, signal, (options) => ({
    approve: () => {
      throw new Error("nobody can be asked over this wire");
    },
    ...options,
    modelOptions: { ...options.modelOptions, ...asked.modelOptions },
    instructions: [options.instructions ?? "", instructions].filter((text) => text !== "").join("\n\n"),
  }));
  const session = agent.session(kept?.saved ?? saved);
  for (const [callId, content] of kept?.results ?? []) session.toolResult(callId, toolOutput({ content }));
  const run = session.resume({ signal, ...(asked.output !== undefined && { output: asked.output }) });
  if (run === undefined) throw badRequest("there is nothing to answer");
  const key = crypto.randomUUID().replaceAll("-", "");
  return {
    events: run.toReadableStream({ untilSuspended: true }).getReader() as ReadableStreamDefaultReader<AgentEvent>,
    key,
    async end() {
      const { clientCalls, status } = session.getState();
      const callIds = clientCalls.map(({ callId }) => callId);
      if (status === "awaiting-result") suspended.keep(key, callIds, session.toJSON());
      await agent.close();
    },
  };
}

async function whole({ events, end }: Answering, writer: CompletionWriter): Promise<Response> {
  const filter = new StepFilter("buffer");
  try {
    for (;;) {
      const { done, value } = await events.read();
      if (done) break;
      for (const event of filter.take(value)) writer.take(event);
    }
    return Response.json(writer.completion());
  } finally {
    await end();
  }
}

/** Begins to answer when there is something to tell, so that a run that fails before that has a status. */
async function streamed(
  { events, end }: Answering,
  writer: CompletionWriter,
  { includesUsage }: CompletionRequest,
  bufferSteps: boolean,
): Promise<Response> {
  const filter = new StepFilter(bufferSteps ? "buffer" : "stop");
  const encoder = new TextEncoder();
  let isOver = false;
  /** The next lines; the last ones when it is over. */
  const next = async (): Promise<string> => {
    try {
      for (;;) {
        const { done, value } = await events.read();
        const lines = done
          ? writer.last(includesUsage)
          : filter
              .take(value)
              .map((event) => writer.chunks(event))
              .join("");
        if (!done && !filter.isStopped && lines === "") continue;
        if (done || filter.isStopped) await over();
        return filter.isStopped ? lines + writer.brokenOff() : lines;
      }
    } catch (thrown) {
      await over();
      throw thrown;
    }
  };
  const over = async (): Promise<void> => {
    isOver = true;
    await events.cancel().catch(() => {});
    await end();
  };
  let first = await next();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const lines = first === "" ? await next().catch((thrown: unknown) => writer.failed(thrown)) : first;
        first = "";
        controller.enqueue(encoder.encode(lines));
        if (isOver) controller.close();
      },
      cancel: over,
    },
    { highWaterMark: 0 },
  );
  return new Response(body, {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache, no-transform" },
  });
}

const modelOf = (id: string): unknown => ({ id, object: "model", created: 0, owned_by: "crablet" });

/** What a failed run is to a caller that only knows statuses. */
const STATUSES: Readonly<Record<string, number>> = {
  "rate-limit": 429,
  overloaded: 503,
  timeout: 504,
  "context-overflow": 400,
  "content-filter": 400,
  "invalid-input": 500,
  internal: 500,
  storage: 500,
  limit: 500,
};

function errorResponse({ kind }: ErrorInfo, status: number, message: string): Response {
  const type = status < 500 ? "invalid_request_error" : "server_error";
  return Response.json({ error: { message, type, param: null, code: kind } }, { status });
}
