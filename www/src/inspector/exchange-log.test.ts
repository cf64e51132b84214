import { expect, test } from "vitest";
import {
  type Exchange,
  keptBody,
  MAX_BODY,
  MAX_EXCHANGES,
  shownAddress,
  shownHeaders,
  withExchange,
} from "./exchange-log";
import { HIDDEN } from "./hiding";

const exchange = (id: number, change: Partial<Exchange> = {}): Exchange => ({
  id,
  method: "POST",
  url: "https://example.com/",
  at: id,
  until: undefined,
  requestHeaders: [],
  requestBody: "",
  status: undefined,
  responseHeaders: [],
  responseBody: "",
  error: undefined,
  ...change,
});

test("headers that carry a secret are shown without it", () => {
  const secret = "planted-secret";
  for (const name of ["authorization", "x-api-key", "api-key", "x-goog-api-key", "DPoP", "mcp-session-id", "Cookie"]) {
    const shown = shownHeaders(new Headers([[name, secret]]));
    expect(JSON.stringify(shown)).not.toContain(secret);
    for (const [, value] of shown) expect(value).toBe(HIDDEN);
  }
  expect(shownHeaders(new Headers({ accept: "text/event-stream" }))).toEqual([["accept", "text/event-stream"]]);
});

test("an address is shown without its user, its password, and keys among its parameters", () => {
  const shown = shownAddress(
    "https://user:planted@example.com/v1?alt=sse&v=1&key=planted-1&key=planted-2&access_token=planted-3&page=planted-4",
  );
  expect(shown).not.toContain("planted");
  expect(shown).toContain("alt=sse&v=1&key=");
  expect(shownAddress("nowhere")).toBe("nowhere");
  expect(shownAddress("ws://127.0.0.1:6735")).toBe("ws://127.0.0.1:6735");
});

test("a long body is cut, and says so", () => {
  expect(keptBody("a".repeat(MAX_BODY))).toHaveLength(MAX_BODY);
  expect(keptBody("a".repeat(MAX_BODY + 5))).toContain("and 5 characters more");
});

test("the log keeps the newest exchanges, and takes in what becomes of one", () => {
  let log: readonly Exchange[] = [];
  for (let id = 0; id <= MAX_EXCHANGES; id++) log = withExchange(log, exchange(id));
  expect(log).toHaveLength(MAX_EXCHANGES);
  log = withExchange(log, exchange(MAX_EXCHANGES, { status: 200 }));
  expect(log.at(-1)).toMatchObject({ status: 200 });
  expect(withExchange(log, exchange(0, { status: 200 }))).toBe(log);
});
