// Handlers of the form `(Request) => Response` on a port of the loopback interface.
import { Readable } from "node:stream";
import { listen } from "./servers.mjs";

/**
 * @param {(request: Request) => Promise<Response> | Response | undefined} handle
 * @param {import("node:http").RequestListener} [otherwise] answers what `handle` gives no response for
 * @returns {ReturnType<typeof listen>}
 */
export function serveFetch(handle, otherwise = (_request, response) => response.writeHead(404).end()) {
  return listen(async (incoming, outgoing) => {
    const controller = new AbortController();
    outgoing.on("close", () => {
      if (!outgoing.writableFinished) controller.abort(new DOMException("the client went away", "AbortError"));
    });
    const hasBody = incoming.method !== "GET" && incoming.method !== "HEAD";
    const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
      method: incoming.method,
      headers: Object.entries(incoming.headers).flatMap(([name, value]) => [value].flat().map((one) => [name, one])),
      body: hasBody ? Readable.toWeb(incoming) : undefined,
      duplex: "half",
      signal: controller.signal,
    });
    const response = await handle(request);
    if (response === undefined) return otherwise(incoming, outgoing);
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.flushHeaders();
    if (response.body === null) return outgoing.end();
    const reader = response.body.getReader();
    controller.signal.addEventListener("abort", () => void reader.cancel().catch(() => {}));
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        outgoing.write(value);
      }
      outgoing.end();
    } catch {
      outgoing.destroy();
    }
  });
}
