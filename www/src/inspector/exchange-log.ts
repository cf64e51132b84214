// What went over HTTP, as it was written: the requests to models and tool servers with the answers, without the secrets.

import { HIDDEN, isSecretHeader, mayBeSecretParameter, withoutSecrets } from "./hiding";

/** One request and its answer. */
export interface Exchange {
  readonly id: number;
  readonly method: string;
  readonly url: string;
  /** Milliseconds of `performance.now()`. */
  readonly at: number;
  /** When the answer was over, or was given up. */
  readonly until: number | undefined;
  readonly requestHeaders: readonly (readonly [string, string])[];
  readonly requestBody: string;
  readonly status: number | undefined;
  readonly responseHeaders: readonly (readonly [string, string])[];
  readonly responseBody: string;
  /** Why there is no answer, or no more of it. */
  readonly error: string | undefined;
}

/** The most exchanges kept; the oldest are dropped. */
export const MAX_EXCHANGES = 100;

/** The most of a body that is kept, in UTF-16 units. */
export const MAX_BODY = 200_000;

/** The headers to be shown: those that carry a secret without it, and the others without what they repeat. */
export function shownHeaders(headers: Headers, secrets: readonly string[] = []): (readonly [string, string])[] {
  return [...headers].map(
    ([name, value]) => [name, isSecretHeader(name) ? HIDDEN : withoutSecrets(value, secrets)] as const,
  );
}

/** The address to be shown: without user, password, fragment and the values of parameters that may carry a secret. */
export function shownAddress(address: string): string {
  const url = URL.parse(address);
  if (!url) return address;
  const whole = url.href;
  url.username = "";
  url.password = "";
  url.hash = "";
  for (const [name, value] of new Set(url.searchParams))
    if (mayBeSecretParameter(name, value)) url.searchParams.set(name, HIDDEN);
  // What hides nothing is shown as it was written, without the slash that a URL adds.
  return url.href === whole ? address : url.href;
}

/** A body to be kept: its beginning, and how much more there was. */
export function keptBody(body: string): string {
  return cutBody(body.slice(0, MAX_BODY), body.length - MAX_BODY);
}

/** The beginning of a body, and how many characters more there were. */
export function cutBody(beginning: string, left: number): string {
  return left > 0 ? `${beginning}\n… and ${left} characters more` : beginning;
}

/** The log with one more exchange, or with a changed one. */
export function withExchange(log: readonly Exchange[], exchange: Exchange): readonly Exchange[] {
  const index = log.findLastIndex(({ id }) => id === exchange.id);
  if (index >= 0) return log.with(index, exchange);
  // One that was dropped while its answer came stays dropped.
  const newest = log.at(-1)?.id ?? -1;
  return exchange.id > newest ? [...log, exchange].slice(-MAX_EXCHANGES) : log;
}
