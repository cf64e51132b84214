import { invalidInput } from "../../error.js";
import { CODE, RpcFault } from "../protocol.js";
import { failed } from "./answer.js";

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];
/** The headers beside `mcp-*` that a page may send. */
const REQUEST_HEADERS = ["authorization", "content-type", "accept", "last-event-id"];
/** As much of a stranger's text as an answer shows. */
const MAX_SHOWN = 120;

/**
 * Who may come in, before anybody asks for a token: the names of the server that count, and the pages that may use it. It is what
 * keeps a page whose name was bound to this machine from using a server of it.
 */
export class Gate {
  /** `undefined` where any counts. */
  readonly #hosts: readonly string[] | undefined;
  readonly #origins: readonly string[];

  constructor(hosts: readonly string[] | "any", origins: readonly string[]) {
    this.#hosts = hosts === "any" ? undefined : hosts.map((host) => host.toLowerCase());
    this.#origins = origins.map(readOrigin);
  }

  static readonly loopback: readonly string[] = LOOPBACK;

  /** The refusal of a request that may not come in. */
  check(request: Request): Response | undefined {
    const host = (request.headers.get("host") ?? new URL(request.url).host).toLowerCase();
    const origin = request.headers.get("origin");
    if (!this.#allowsHost(host))
      return refused(`the host ${shown(host)} is none of this server's names; whoever runs it can add it to its hosts`);
    if (origin !== null && !this.#allowsOrigin(origin, host))
      return refused(`pages of ${shown(origin)} may not use this server; whoever runs it can add it to its origins`);
    return undefined;
  }

  #allowsHost(host: string): boolean {
    const name = host.replace(/:\d*$/, "");
    return this.#hosts?.some((own) => own === host || own === name) ?? true;
  }

  #allowsOrigin(origin: string, host: string): boolean {
    // A host that was not checked says nothing: a page of a name that was bound to this machine has the same in both.
    const isOwn = this.#hosts !== undefined && /^https?:\/\/(.+)$/.exec(origin)?.[1] === host;
    return isOwn || this.#origins.includes(origin);
  }
}

/** The answer to a browser that asks whether a page of an allowed origin may send a request, if it asks so. */
export function preflight({ method, headers }: Request): Response | undefined {
  if (method !== "OPTIONS" || !headers.has("origin") || !headers.has("access-control-request-method")) return undefined;
  const wanted = (headers.get("access-control-request-headers") ?? "").split(",").map((name) => name.trim());
  const isOurs = (name: string) => REQUEST_HEADERS.includes(name) || name.startsWith("mcp-");
  const answer = new Headers({
    "cache-control": "no-store",
    "access-control-allow-methods": "POST, GET, DELETE",
    "access-control-max-age": "600",
    "access-control-allow-headers": wanted.filter((name) => isOurs(name.toLowerCase())).join(", "),
  });
  // Chrome asks so before a page of a public address may reach this machine.
  if (headers.get("access-control-request-private-network") === "true")
    answer.set("access-control-allow-private-network", "true");
  return new Response(null, { status: 204, headers: answer });
}

/** An answer that the page which asked can read; nobody else's browser shows it to its page. */
export function readable(request: Request, response: Response): Response {
  const origin = request.headers.get("origin");
  const headers = new Headers(response.headers);
  headers.append("vary", "Origin");
  if (origin !== null) {
    headers.set("access-control-allow-origin", origin);
    headers.set("access-control-expose-headers", "Mcp-Session-Id, WWW-Authenticate");
  }
  // The headers of some answers cannot be changed.
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

/** What a person wrote as browsers send it. */
function readOrigin(written: string): string {
  const matched = /^([a-z][a-z0-9+.-]*):\/\/([a-z0-9._:[\]-]+)$/.exec(
    String(written).toLowerCase().replace(/\/+$/, ""),
  );
  const [, scheme, authority] = matched ?? [];
  if (scheme === undefined || authority === undefined)
    throw invalidInput(
      `${JSON.stringify(written)} is no origin; write scheme, host and port only, such as https://app.example`,
    );
  const port = { http: /:80$/, https: /:443$/ }[scheme];
  return `${scheme}://${port === undefined ? authority : authority.replace(port, "")}`;
}

function refused(reason: string): Response {
  return failed(403, null, new RpcFault(CODE.invalidRequest, reason));
}

/** Text of a stranger, safe to stand in an answer. */
function shown(text: string): string {
  return JSON.stringify(text.slice(0, MAX_SHOWN));
}
