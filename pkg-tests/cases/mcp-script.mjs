// An HTTP server that answers as the steps of an mcp-http case say.
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { chunksOf } from "./bytes.mjs";

const MEMBERS = ["http", "rpc", "when_header", "nth", "expect_params", "respond", "note"];

/** Writes up to this many chunks one turn of the event loop apart; finer cuttings would only take longer. */
const SPACED_CHUNKS = 40;

/**
 * @param {object[]} steps as the README of the cases describes them
 * @param {(chunks: Buffer[]) => Buffer[]} cut
 * @returns {Promise<{ url: string, requests: object[], problems: string[], close: () => Promise<void> }>} `problems` is what
 *   the client sent that the script does not allow
 */
export async function startScriptedServer(steps, cut) {
  const script = steps.map((step) => ({ ...step, seen: 0 }));
  const requests = [];
  const problems = steps.flatMap((step) =>
    Object.keys(step)
      .filter((name) => !MEMBERS.includes(name))
      .map((name) => `this runner does not know the member ${name} of a server step`),
  );
  let callId = null;

  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = parts.length > 0 ? JSON.parse(Buffer.concat(parts).toString()) : undefined;
    const rpc = body === undefined ? request.method : (body.method ?? "(response)");
    if (rpc === "tools/call") callId = body.id;
    requests.push({ http: request.method, rpc, body, headers: request.headers });
    const step = stepFor(script, request, rpc);
    if (step === undefined) {
      if (request.method !== "POST") return response.writeHead(405).end();
      if (body?.id === undefined) return response.writeHead(202).end();
      problems.push(`the client sent ${request.method} ${rpc}, for which there is no step`);
      return response.writeHead(500).end();
    }
    for (const [name, value] of Object.entries(step.expect_params ?? {})) {
      if (!isDeepStrictEqual(body?.params?.[name], value)) problems.push(`${rpc} was sent with another ${name}`);
    }
    return respond(step.respond, response, (bytes) => filled(bytes, body?.id, callId), cut);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/mcp`,
    requests,
    problems,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function stepFor(script, { method, headers }, rpc) {
  let chosen;
  for (const step of script) {
    const hasHeaders = Object.entries(step.when_header ?? {}).every(
      ([name, value]) => (headers[name.toLowerCase()] ?? null) === value,
    );
    if (step.http !== method || (step.rpc !== undefined && step.rpc !== rpc) || !hasHeaders) continue;
    step.seen += 1;
    if (step.nth === undefined || step.nth === step.seen) chosen ??= step;
  }
  return chosen;
}

async function respond(given, response, fill, cut) {
  const { status, headers, json, then, delay_ms = 0 } = given;
  if (delay_ms > 0) await pause(delay_ms);
  const body =
    json === undefined
      ? chunksOf(given.chunks_gen === undefined ? { chunks: [], ...given } : given)
      : [Buffer.from(JSON.stringify(json))];
  response.socket.setNoDelay(true);
  response.writeHead(status, headers);
  response.flushHeaders();
  const pieces = cut(body.map(fill));
  for (const piece of pieces) {
    response.write(piece);
    if (pieces.length <= SPACED_CHUNKS) await pause(0);
  }
  switch (then) {
    case undefined:
    case "close":
      return response.end();
    case "hold":
      return undefined;
    case "reset":
      return response.socket.resetAndDestroy();
    default:
      throw new Error(`this runner does not know then: ${then}`);
  }
}

/** The ids in the place of their names. Bytes that are no text stay. */
function filled(bytes, id, callId) {
  const text = bytes.toString();
  if (!Buffer.from(text).equals(bytes)) return bytes;
  const textId = typeof id === "string" ? id : JSON.stringify(id ?? null);
  return Buffer.from(
    text
      .replaceAll('"$IDSTR"', JSON.stringify(textId))
      .replaceAll('"$CALLID"', JSON.stringify(callId))
      .replaceAll('"$ID"', JSON.stringify(id ?? null)),
  );
}
