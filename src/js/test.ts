/**
 * For tests of your own agents: a model that follows a script, and a `fetch` that plays answers back.
 *
 * @packageDocumentation
 */
import type { ModelChunk, ModelFunction, ModelRequest } from "./model.js";

/** One answer of a scripted model: text, pieces, an error to fail with, or a function of the request that gives one of them. */
export type ScriptedAnswer =
  | string
  | Error
  | readonly ModelChunk[]
  | ((request: ModelRequest) => string | Error | readonly ModelChunk[]);

/** A model that follows a script, and remembers what it was asked. */
export type ScriptedModel = ModelFunction & { readonly requests: readonly ModelRequest[] };

/** A model that gives these answers, one for each call. A call beyond the last one fails. */
export function scriptedModel(answers: readonly ScriptedAnswer[]): ScriptedModel {
  const requests: ModelRequest[] = [];
  async function* scripted(request: ModelRequest): AsyncGenerator<ModelChunk, void> {
    const scriptedAnswer = answers[requests.length];
    requests.push(request);
    if (scriptedAnswer === undefined)
      throw new Error(`the script has ${answers.length} answers, and this is call ${requests.length}`);
    const answer = typeof scriptedAnswer === "function" ? scriptedAnswer(request) : scriptedAnswer;
    if (answer instanceof Error) throw answer;
    yield* typeof answer === "string" ? [answer] : answer;
  }
  return Object.assign(scripted, { requests });
}

/** One answer of a scripted `fetch`. */
export interface ScriptedResponse {
  /** Default 200. */
  readonly status?: number;
  /** Default: `content-type: text/event-stream`. */
  readonly headers?: HeadersInit;
  /** The body, one network chunk an element. */
  readonly chunks?: readonly (string | Uint8Array)[];
  /** After the chunks: `end` (default), `cut` breaks the connection, `hold` keeps it open until it is aborted. */
  readonly then?: "end" | "cut" | "hold";
}

/** What a scripted `fetch` was asked. */
export interface ScriptedRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  /** The body as text. */
  readonly body: string;
  /** Whether the caller aborted it. */
  readonly signal: AbortSignal;
}

/** A `fetch` that plays answers back, and remembers what it was asked. */
export type ScriptedFetch = typeof fetch & { readonly requests: readonly ScriptedRequest[] };

/** A `fetch` that gives these answers, one for each call. A call beyond the last one fails like an unreachable server. */
export function scriptedFetch(responses: readonly ScriptedResponse[]): ScriptedFetch {
  const requests: ScriptedRequest[] = [];
  const scripted = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const response = responses[requests.length];
    requests.push({
      url: request.url,
      method: request.method,
      headers: request.headers,
      body: await request.text(),
      signal: init?.signal ?? request.signal,
    });
    if (response === undefined) throw new TypeError("fetch failed");
    const { status = 200, headers = { "content-type": "text/event-stream" } } = response;
    return new Response(bodyOf(response, init?.signal ?? undefined), { status, headers });
  };
  return Object.assign(scripted, { requests });
}

function bodyOf(
  { chunks = [], then = "end" }: ScriptedResponse,
  signal: AbortSignal | undefined,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let position = 0;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      signal?.addEventListener("abort", () => controller.error(signal.reason), { once: true });
    },
    pull(controller) {
      const chunk = chunks[position];
      position += 1;
      if (chunk !== undefined) controller.enqueue(typeof chunk === "string" ? encoder.encode(chunk) : chunk);
      else if (then === "end") controller.close();
      else if (then === "cut") controller.error(new TypeError("terminated"));
      else return new Promise<void>(() => {});
      return undefined;
    },
  });
}
