import type { OriginRule } from "./origins.js";

/** The most redirects that are followed: more than any working site needs. */
const MAX_REDIRECTS = 5;

/** A request within limits. */
export interface LimitedRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: Headers;
  readonly body?: string;
  readonly allows: OriginRule;
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  readonly fetch: typeof fetch;
  /** Headers that go to the origin of `url` and to no other, whatever redirects say. */
  readonly secretHeaders?: Headers;
}

/** What came back. */
export interface LimitedResponse {
  readonly status: number;
  readonly url: URL;
  readonly contentType: string;
  readonly body: Uint8Array;
  /** Whether there is more of the body. */
  readonly isCut: boolean;
}

/**
 * Sends a request without the browser's credentials, and looks at each redirect before it is followed. Of the answer it
 * reads no more than the limit, and goes on no longer than the time.
 *
 * @throws Error with a message for the model, that holds neither query nor headers.
 */
export async function limitedFetch(request: LimitedRequest): Promise<LimitedResponse> {
  const { timeoutMs, signal } = request;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    return await follow(request, AbortSignal.any([signal, timeout]));
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.aborted) throw new Error(`${request.url.origin} did not answer within ${timeoutMs / 1000} s`);
    // What fetch throws differs, says little, and may name the whole address.
    if (error instanceof TypeError)
      throw new Error(
        `no answer from ${request.url.origin}: it cannot be reached, or does not let this page read its answers (CORS)`,
        { cause: error },
      );
    throw error;
  }
}

async function follow(request: LimitedRequest, signal: AbortSignal): Promise<LimitedResponse> {
  const { method, maxBytes, allows, fetch } = request;
  let { url } = request;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
    const headers = new Headers(request.headers);
    const secrets = url.origin === request.url.origin ? (request.secretHeaders ?? []) : [];
    for (const [name, value] of secrets) headers.set(name, value);
    const response = await fetch(url.href, {
      method,
      headers,
      redirect: "manual",
      signal,
      ...privacy(),
      ...(request.body !== undefined && { body: request.body }),
    });
    if (response.type === "opaqueredirect") throw hiddenRedirect(url);
    const location = REDIRECTS.has(response.status) ? response.headers.get("location") : null;
    if (location === null) {
      const { body, isCut } = await readBody(response, maxBytes);
      const contentType = response.headers.get("content-type") ?? "";
      return { status: response.status, url, contentType, body, isCut };
    }
    await response.body?.cancel();
    url = redirected(url, location, method, allows);
  }
  throw new Error(`${request.url.origin} redirects more than ${MAX_REDIRECTS} times`);
}

/** Edge workers have neither cookies nor referrers, and refuse the options. */
function privacy(): RequestInit {
  const hasCredentials = typeof Request === "function" && "credentials" in Request.prototype;
  return hasCredentials ? { credentials: "omit", referrerPolicy: "no-referrer" } : {};
}

function redirected(from: URL, location: string, method: string, allows: OriginRule): URL {
  if (!URL.canParse(location, from)) throw new Error(`${from.origin} redirects to something that is not an address`);
  const to = new URL(location, from);
  if (to.username !== "" || to.password !== "" || !allows(to))
    throw new Error(`${from.origin} redirects to ${to.origin}, and requests to that are not allowed`);
  if (method !== "GET" && method !== "HEAD")
    throw new Error(
      `${from.origin} redirects this ${method} to ${to.origin}${to.pathname}, and only GET follows redirects`,
    );
  return to;
}

function hiddenRedirect(url: URL): Error {
  return new Error(
    `${url.origin} answers with a redirect, and a browser does not tell where to: use the address of the final page, often the one with or without "www." or a slash at the end`,
  );
}

async function readBody(response: Response, maxBytes: number): Promise<{ body: Uint8Array; isCut: boolean }> {
  const body = new Uint8Array(maxBytes);
  let size = 0;
  const reader = response.body?.getReader();
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) break;
    const taken = value.subarray(0, maxBytes - size);
    body.set(taken, size);
    size += taken.length;
    if (taken.length < value.length) {
      await reader.cancel().catch(() => {});
      return { body, isCut: true };
    }
  }
  return { body: body.subarray(0, size), isCut: false };
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
