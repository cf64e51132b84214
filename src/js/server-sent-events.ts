import { fromCore } from "./error.js";
import { load } from "./load.js";

/** One event of a stream. */
export interface ServerSentEvent {
  /** The type; `message` when the stream names none. */
  readonly event: string;
  readonly data: string;
  /** The `id` field of this event, if it has one. */
  readonly id?: string;
  /** The last `id` of the stream so far; empty for none. */
  readonly lastEventId: string;
  /** The reconnection time in milliseconds that the stream asked for, if it did. */
  readonly retry?: number;
}

/**
 * Reads a `text/event-stream` by the rules of the HTML standard: an event that the stream's end cuts off is no event.
 * Leaving the loop cancels the body.
 *
 * @throws CrabletError `malformed-stream` when an event is larger than any should be; `signal.reason` when the signal aborts.
 */
export async function* readServerSentEvents(
  body: Response | ReadableStream<Uint8Array>,
  options: { readonly signal?: AbortSignal } = {},
): AsyncGenerator<ServerSentEvent, undefined> {
  const { signal } = options;
  const stream = "body" in body ? body.body : body;
  if (stream === null) return;
  const reader = stream.getReader();
  const abort = (): void => void reader.cancel(signal?.reason).catch(() => {});
  signal?.addEventListener("abort", abort, { once: true });
  const { SseHandle } = await load();
  const parser = new SseHandle();
  try {
    for (;;) {
      signal?.throwIfAborted();
      const { done, value } = await reader.read();
      signal?.throwIfAborted();
      if (done) return;
      // Not `yield*`, which wraps each of them in further promises.
      for (const event of JSON.parse(parser.push(value)) as ServerSentEvent[]) yield event;
    }
  } catch (thrown) {
    throw fromCore(thrown);
  } finally {
    signal?.removeEventListener("abort", abort);
    parser.free();
    await reader.cancel().catch(() => {});
  }
}
