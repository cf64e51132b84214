import { CODE, type Fields, fields, RpcFault } from "../protocol.js";
import { HEADER_MISMATCH } from "./head.js";
import type { Exchange } from "./exchange.js";
import { eventId } from "./event-log.js";

/** How long an answer may take before a stream is opened for it: clients give up on an answer without a head. */
const PATIENCE_MS = 5_000;
/** How often a silent stream says that it is there. */
const PING_INTERVAL_MS = 15_000;
/** How long a client shall wait before it takes up a broken stream. */
const RETRY_MS = 500;

/** What the answer to a request is part of. In a session, a stream can be taken up again; in the stateless era, some errors have
 * a status of their own. */
export type Framing = "session" | "unbound" | "stateless";

/** An answer of a status and nothing else. */
export function empty(status: number, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(null, { status, headers: { "cache-control": "no-store", ...headers } });
}

/** A message as the whole answer. */
export function json(status: number, text: string): Response {
  const headers = {
    "cache-control": "no-store",
    "content-type": "application/json",
    "x-content-type-options": "nosniff",
  };
  return new Response(text, { status, headers });
}

/** The failure of a request, or of something whose id is not known. */
export function failed(status: number, id: string | number | null, { code, message, data }: RpcFault): Response {
  const error = { code, message, ...(data !== undefined && { data }) };
  return json(status, JSON.stringify({ jsonrpc: "2.0", id, error }));
}

/** The answer for a session that is not there, as the official servers give it. */
export function noSession(): Response {
  const message = "there is no such session, or it has ended: send initialize for a new one";
  return failed(404, null, new RpcFault(-32001, message));
}

/** The answer for a stream that cannot be taken up after this event. */
export function lostEvents(): Response {
  const message = "what followed this event is not known any more; ask again for what is missing";
  return failed(400, null, new RpcFault(CODE.invalidRequest, message));
}

export function notAllowed(allowed: string): Response {
  return empty(405, { allow: allowed });
}

/** The answer to a request: its first message alone where that is the whole of it, else a stream of events. */
export async function answerTo(exchange: Exchange, framing: Framing): Promise<Response> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const impatience = new Promise<"late">((late) => {
    timer = setTimeout(late, PATIENCE_MS, "late");
  });
  const first = await Promise.race([exchange.arrival(), impatience]);
  clearTimeout(timer);
  const piece = first === "late" ? undefined : exchange.peek();
  // It was cancelled: nothing follows.
  if (first !== "late" && piece === undefined) return empty(202);
  if (piece?.isLast === true) {
    exchange.take();
    return json(framing === "stateless" ? statusOf(piece.text) : 200, piece.text);
  }
  return eventStream(exchange, framing === "session");
}

/** A stream of events. One that is new in a session begins with an event of no data, to resume after. */
export function eventStream(exchange: Exchange, isNew: boolean): Response {
  exchange.isStream = true;
  const encoder = new TextEncoder();
  let ping: ReturnType<typeof setInterval> | undefined;
  let isSilent = true;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      if (isNew) {
        const id = eventId({ stream: exchange.number, number: 0 });
        controller.enqueue(encoder.encode(`id: ${id}\nretry: ${RETRY_MS}\ndata:\n\n`));
      }
      ping = setInterval(() => {
        // A comment, which tells a client that is gone from one that waits. One who reads nothing needs none.
        if (isSilent && (controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(":\n\n"));
        isSilent = true;
      }, PING_INTERVAL_MS);
    },
    async pull(controller) {
      await exchange.arrival();
      const piece = exchange.take();
      if (piece !== undefined) {
        const id = piece.id === undefined ? "" : `id: ${eventId(piece.id)}\n`;
        controller.enqueue(encoder.encode(`${id}data: ${piece.text}\n\n`));
        isSilent = false;
      }
      if (piece === undefined || piece.isLast) {
        clearInterval(ping);
        controller.close();
      }
    },
    cancel() {
      clearInterval(ping);
      exchange.leave();
    },
  });
  exchange.onLeave(() => clearInterval(ping));
  const headers = { "cache-control": "no-store", "content-type": "text/event-stream" };
  return new Response(body, { headers });
}

/** The status that goes with an answer of the stateless era that is no stream. */
function statusOf(text: string): number {
  const code = fields((JSON.parse(text) as Fields).error)?.code;
  if (code === CODE.methodNotFound) return 404;
  return code === HEADER_MISMATCH || code === CODE.missingCapability || code === CODE.unsupportedVersion ? 400 : 200;
}
