import { CrabletError } from "../error.js";

/** An event of AG-UI as it was received. */
export type ReceivedAgUiEvent = { readonly type: string } & Readonly<Record<string, any>>;

/** Characters of one event: a conversation of some megabytes fits, an endless line does not. */
const MAX_EVENT = 64 * 1024 * 1024;

/**
 * Reads the events that a server of AG-UI sends. Needs no WebAssembly.
 *
 * @throws CrabletError `stream-truncated` when the stream ends without `RUN_FINISHED` or `RUN_ERROR`; `malformed-stream` for what is no
 *   event; `signal.reason` when the signal aborts.
 */
export async function* readAgUiEvents(
  body: ReadableStream<Uint8Array>,
  { signal }: { readonly signal?: AbortSignal } = {},
): AsyncGenerator<ReceivedAgUiEvent, void> {
  const reader = body.getReader();
  const abort = (): void => void reader.cancel(signal?.reason).catch(() => {});
  signal?.addEventListener("abort", abort, { once: true });
  const decoder = new TextDecoder();
  let rest = "";
  let isOver = false;
  try {
    for (;;) {
      signal?.throwIfAborted();
      const { done, value } = await reader.read();
      signal?.throwIfAborted();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      if (rest.length > MAX_EVENT) throw malformed("an event of the stream is too long");
      const events = (done ? `${rest}\n\n` : rest).split(/\r?\n\r?\n/);
      rest = events.pop() ?? "";
      for (const text of events) {
        const event = parse(text);
        if (event === undefined) continue;
        isOver ||= event.type === "RUN_FINISHED" || event.type === "RUN_ERROR";
        yield event;
      }
      if (done) break;
    }
    if (!isOver) {
      const message = "the events ended before the end of the run";
      throw new CrabletError({ kind: "stream-truncated", message, retryable: true });
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    await reader.cancel().catch(() => {});
  }
}

function parse(text: string): ReceivedAgUiEvent | undefined {
  const data = text
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice("data:".length).replace(/^ /, ""))
    .join("\n");
  if (data === "") return undefined;
  try {
    const event: unknown = JSON.parse(data);
    if (typeof event === "object" && event !== null && "type" in event) return event as ReceivedAgUiEvent;
  } catch {
    // Said below.
  }
  throw malformed("an event of the stream is not one of AG-UI");
}

const malformed = (message: string): CrabletError => new CrabletError({ kind: "malformed-stream", message });
