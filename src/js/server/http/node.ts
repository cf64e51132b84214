import type { HttpHandler } from "./handler.js";

/** What is needed of Node's `IncomingMessage`. */
export interface NodeRequest extends AsyncIterable<Uint8Array> {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly rawHeaders: readonly string[];
}

/** What is needed of Node's `ServerResponse`. */
export interface NodeResponse {
  readonly destroyed: boolean;
  /** Sets the status and the headers, names and values in turn. */
  writeHead(status: number, headers: string[]): unknown;
  /** Sends them before there is a body. */
  flushHeaders(): void;
  /** Sends a piece of the body; `false` asks to wait for `drain`. */
  write(chunk: Uint8Array): boolean;
  /** The body is whole. */
  end(): unknown;
  /** Closes the connection in the middle. */
  destroy(): unknown;
  /** Hears of an event once. */
  once(event: "close" | "drain", listener: () => void): unknown;
  /** Hears of it no more. */
  off(event: "close" | "drain", listener: () => void): unknown;
}

/**
 * A handler as Node's `http.createServer` takes it, and so Express and its like, before anything that reads the body. A client that
 * closes its connection aborts the request; one that reads slowly is waited for. What the handler rejects with is answered with
 * 500, and written to the console.
 */
export function nodeListener(handler: HttpHandler | ((request: Request) => Promise<Response>)) {
  return (incoming: NodeRequest, outgoing: NodeResponse): void => {
    const gone = new AbortController();
    outgoing.once("close", () => gone.abort());
    answer(handler, incoming, outgoing, gone.signal).catch((thrown) => {
      if (gone.signal.aborted) return;
      console.error(thrown);
      outgoing.destroy();
    });
  };
}

async function answer(
  handler: (request: Request) => Promise<Response>,
  incoming: NodeRequest,
  outgoing: NodeResponse,
  signal: AbortSignal,
): Promise<void> {
  let response: Response;
  try {
    response = await handler(readRequest(incoming, signal));
  } catch (thrown) {
    console.error(thrown);
    response = new Response(null, { status: 500 });
  }
  outgoing.writeHead(response.status, [...response.headers].flat());
  // The head goes before there is anything to follow it.
  outgoing.flushHeaders();
  const reader = response.body?.getReader();
  const cancel = () => void reader?.cancel().catch(() => {});
  signal.addEventListener("abort", cancel, { once: true });
  if (signal.aborted) cancel();
  for (;;) {
    const { done = true, value } = (await reader?.read()) ?? {};
    if (done || value === undefined) break;
    if (!outgoing.write(value)) await drained(outgoing);
  }
  outgoing.end();
}

function readRequest(incoming: NodeRequest, signal: AbortSignal): Request {
  const { method = "GET", url = "/", rawHeaders } = incoming;
  const headers = new Headers();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = "", value = ""] = rawHeaders.slice(at, at + 2);
    // HTTP/2 has the host among its own headers.
    if (name === ":authority") headers.append("host", value);
    else if (!name.startsWith(":")) headers.append(name, value);
  }
  const hasBody = method !== "GET" && method !== "HEAD";
  const init = { method, headers, signal, ...(hasBody && { body: bodyOf(incoming), duplex: "half" }) };
  // The header says the host; an address that is one for a proxy says nothing here.
  return new Request(`http://localhost${/^\/[^\s\\]*$/.test(url) ? url : "/"}`, init);
}

function bodyOf(incoming: NodeRequest): ReadableStream<Uint8Array> {
  const chunks = incoming[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await chunks.return?.();
    },
  });
}

/** Settles when more can be written, or the client is gone. */
async function drained(outgoing: NodeResponse): Promise<void> {
  if (outgoing.destroyed) return;
  await new Promise<void>((settle) => {
    const done = () => {
      outgoing.off("drain", done);
      outgoing.off("close", done);
      settle();
    };
    outgoing.once("drain", done);
    outgoing.once("close", done);
  });
}
