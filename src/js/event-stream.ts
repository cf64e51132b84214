import { CrabletError } from "./error.js";
import type { AgentEvent } from "./event.js";
import { failureOfStatus } from "./status.js";
import type { ToolSet } from "./tool.js";

/** @internal Events as the text of Server-Sent Events. */
export function eventStream(events: readonly AgentEvent[]): string {
  let text = "";
  for (const event of events) text += `data: ${JSON.stringify(event)}\n\n`;
  return text;
}

/**
 * Reads the events that `run.toResponse()` sent, in a page or wherever the answer arrives. Needs no WebAssembly.
 *
 * @throws CrabletError of kind `stream-truncated` when the stream ends without `run-end` or `run-suspended`; of the kind that
 * the status says when the answer is not a stream; `signal.reason` when the signal aborts.
 */
export async function* readEvents<T extends ToolSet = ToolSet>(
  body: Response | ReadableStream<Uint8Array>,
  options: { readonly signal?: AbortSignal } = {},
): AsyncGenerator<AgentEvent<T>, undefined> {
  const reader = streamOf(body).getReader();
  const decoder = new TextDecoder();
  const { signal } = options;
  const abort = (): void => void reader.cancel(signal?.reason).catch(() => {});
  signal?.addEventListener("abort", abort, { once: true });
  let last: AgentEvent<T> | undefined;
  try {
    for (let rest = ""; ; ) {
      signal?.throwIfAborted();
      const { done, value } = await reader.read();
      signal?.throwIfAborted();
      if (done) break;
      rest += decoder.decode(value, { stream: true });
      if (rest.length > MAX_EVENT)
        throw new CrabletError({
          kind: "malformed-stream",
          message: "an event of the stream is too long to be one of crablet's",
        });
      const complete = rest.lastIndexOf("\n\n") + 2;
      if (complete < 2) continue;
      for (const line of rest.slice(0, complete).split("\n")) {
        if (!line.startsWith("data: ")) continue;
        last = parse<T>(line.slice("data: ".length));
        yield last;
      }
      rest = rest.slice(complete);
    }
    if (last?.type !== "run-end" && last?.type !== "run-suspended") {
      throw new CrabletError({
        kind: "stream-truncated",
        message: "the events ended before the end of the run",
        retryable: true,
      });
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    await reader.cancel().catch(() => {});
  }
}

/** Characters of one event: a tool's result of some megabytes fits, an endless line does not. */
const MAX_EVENT = 64 * 1024 * 1024;

function streamOf(body: Response | ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  if (!("body" in body)) return body;
  if (body.ok && body.body !== null) return body.body;
  throw new CrabletError({
    ...failureOfStatus(body.status),
    message: `the server answered with status ${body.status} instead of events`,
  });
}

function parse<T extends ToolSet>(data: string): AgentEvent<T> {
  try {
    return JSON.parse(data) as AgentEvent<T>;
  } catch (cause) {
    throw new CrabletError({ kind: "malformed-stream", message: "an event of the stream is not JSON" }, { cause });
  }
}
