import type { ErrorInfo } from "./error.js";

/** @internal What a status of HTTP says of a failure. */
export function failureOfStatus(status: number): Pick<ErrorInfo, "kind" | "retryable" | "status"> {
  const of = (kind: string, retryable: boolean): Pick<ErrorInfo, "kind" | "retryable" | "status"> => ({
    kind,
    retryable,
    status,
  });
  if (status === 401 || status === 403) return of("auth", false);
  if (status === 402) return of("quota", false);
  if (status === 408) return of("timeout", true);
  if (status === 429) return of("rate-limit", true);
  if (status === 503 || status === 529) return of("overloaded", true);
  return status < 500 ? of("bad-request", false) : of("server", true);
}

/** @internal Milliseconds of a `retry-after` header, which has seconds or a date. */
export function retryAfterOf(value: string | null): number | undefined {
  if (value === null || value.trim() === "") return undefined;
  const seconds = Number(value);
  const milliseconds = Number.isNaN(seconds) ? Date.parse(value) - Date.now() : seconds * 1000;
  return Number.isNaN(milliseconds) ? undefined : Math.max(0, Math.round(milliseconds));
}
