import { CODE, type Fields, fields, HANDSHAKE, invalidParams, RpcFault, STATELESS } from "../protocol.js";
import { decode } from "./mirrored.js";

/** A header says something else than the body (2026-07-28). */
export const HEADER_MISMATCH = -32020;

const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities";

/** What a message is part of. */
export type Part =
  /** It stands alone, and its headers fit. */
  | { readonly kind: "stateless" }
  /** It is of the handshake era and of no session, where there are none. */
  | { readonly kind: "unbound"; readonly version: string }
  /** The start of a session. */
  | { readonly kind: "opening" }
  | { readonly kind: "session"; readonly session: string };

/** The status that says what is wrong with the media types of a request, if something is. */
export function checkMedia(method: string, headers: Headers): number | undefined {
  const offered = (headers.get("accept") ?? "").split(",").map(mediaType);
  const accepts = (wanted: string) =>
    offered.some((type) => type === wanted || type === "*/*" || type === `${wanted.split("/")[0]}/*`);
  if (method === "POST") {
    const isJson = mediaType(headers.get("content-type") ?? "") === "application/json";
    if (!isJson || headers.has("content-encoding")) return 415;
  }
  const isFine = accepts("text/event-stream") && (method !== "POST" || accepts("application/json"));
  return isFine || method === "DELETE" ? undefined : 406;
}

/**
 * Tells what a message is part of.
 *
 * @throws RpcFault what is wrong, which is answered with 400.
 */
export function partOf(headers: Headers, method: string | undefined, params: Fields, hasSessions: boolean): Part {
  const version = header(headers, "mcp-protocol-version");
  const session = hasSessions ? header(headers, "mcp-session-id") : undefined;
  const meta = fields(params._meta) ?? {};
  const isKnown = version === undefined || HANDSHAKE.includes(version);
  if (!(VERSION_KEY in meta) && version !== STATELESS) {
    if (!isKnown && (session !== undefined || !hasSessions)) throw unsupported(version);
    // Who names no revision is of the last one that did not have to (2025-11-25, "Protocol Version Header").
    if (!hasSessions) return { kind: "unbound", version: version ?? "2025-03-26" };
    if (session !== undefined && method === "initialize")
      throw invalid("the session is initialized already; send initialize without its id for another");
    if (session !== undefined) return { kind: "session", session };
    if (method === "initialize") return { kind: "opening" };
    if (isKnown)
      throw invalid(
        "the request belongs to no session: send initialize first, or say in _meta and in the headers that it is of the " +
          "revision 2026-07-28",
      );
  }
  if (method !== undefined) checkStateless(headers, version, method, params, meta);
  return { kind: "stateless" };
}

/** Whether a request without a body is of the stateless era. */
export function isStateless(headers: Headers): boolean {
  return headers.get("mcp-protocol-version")?.trim() === STATELESS;
}

/** Whether a stateless request says all that it has to, and its headers the same. */
function checkStateless(
  headers: Headers,
  version: string | undefined,
  method: string,
  params: Fields,
  meta: Fields,
): void {
  const named = meta[VERSION_KEY];
  if (typeof named !== "string") throw invalidParams(`_meta lacks ${VERSION_KEY}, which is the protocol's version`);
  if (fields(meta[CAPABILITIES_KEY]) === undefined)
    throw invalidParams(`_meta lacks ${CAPABILITIES_KEY}, which is an object, if an empty one`);
  const check = (name: string, said: string | undefined, meant: string, read = said) => {
    if (read === meant) return;
    const sent = said === undefined ? "is missing" : `says ${JSON.stringify(said)}`;
    throw new RpcFault(HEADER_MISMATCH, `the header ${name} ${sent}, and the body ${JSON.stringify(meant)}`);
  };
  check("mcp-protocol-version", version, named);
  if (named !== STATELESS) throw unsupported(named);
  check("mcp-method", header(headers, "mcp-method"), method);
  const isNamed = method === "tools/call" || method === "prompts/get";
  const subject = isNamed ? params.name : method === "resources/read" ? params.uri : undefined;
  // What is without a name is refused by the server.
  if (typeof subject !== "string") return;
  const said = header(headers, "mcp-name");
  check("mcp-name", said, subject, said === undefined ? said : decode(said));
}

/**
 * A header of the protocol, which is ASCII.
 *
 * @throws RpcFault
 */
export function header(headers: Headers, name: string): string | undefined {
  const value = headers.get(name);
  if (value === null) return undefined;
  if (!/^[\t -~]*$/.test(value)) throw new RpcFault(HEADER_MISMATCH, `the header ${name} holds more than ASCII`);
  return value.trim();
}

function unsupported(version: string | undefined): RpcFault {
  return new RpcFault(CODE.unsupportedVersion, `the protocol version ${JSON.stringify(version)} is not spoken here`, {
    supported: [STATELESS],
    requested: version,
  });
}

function invalid(message: string): RpcFault {
  return new RpcFault(CODE.invalidRequest, message);
}

function mediaType(value: string): string {
  return (value.split(";")[0] ?? "").trim().toLowerCase();
}
