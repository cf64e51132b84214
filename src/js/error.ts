/** The kinds of error of the whole project. Kinds may be added. */
export type ErrorKind =
  | "auth"
  | "rate-limit"
  | "overloaded"
  | "quota"
  | "context-overflow"
  | "bad-request"
  | "content-filter"
  | "server"
  | "network"
  | "timeout"
  | "stream-truncated"
  | "malformed-stream"
  | "malformed-tool-call"
  | "aborted"
  | "connection-closed"
  | "session-expired"
  | "rpc"
  | "protocol"
  | "unsupported-version"
  | "invalid-input"
  | "busy"
  | "limit"
  | "storage"
  | "conflict"
  | "internal"
  | (string & {});

/** An error as plain data: what events and states carry. */
export interface ErrorInfo {
  readonly kind: ErrorKind;
  /** What happened, why, and what to do. Never holds a key. */
  readonly message: string;
  /** Whether the same request may succeed later, unchanged. */
  readonly retryable: boolean;
  /** The HTTP status, where there was one. */
  readonly status?: number;
  /** The peer's own word or number for the error, such as `invalid_api_key`. */
  readonly code?: string;
  /** How long the peer asked to be left alone, in milliseconds. */
  readonly retryAfterMs?: number;
}

const BRAND = Symbol.for("crablet.error");

/** The one error class of the package. */
export class CrabletError extends Error implements ErrorInfo {
  readonly kind: ErrorKind;
  readonly retryable: boolean;
  readonly status?: number;
  readonly code?: string;
  readonly retryAfterMs?: number;
  /** @internal */
  readonly [BRAND] = true;

  /** An error of this kind; `retryable` is false by default, and the options are those of `Error`. */
  constructor(info: Omit<ErrorInfo, "retryable"> & { readonly retryable?: boolean }, options?: ErrorOptions) {
    super(info.message, options);
    this.name = "CrabletError";
    this.kind = info.kind;
    this.retryable = info.retryable ?? false;
    if (info.status !== undefined) this.status = info.status;
    if (info.code !== undefined) this.code = info.code;
    if (info.retryAfterMs !== undefined) this.retryAfterMs = info.retryAfterMs;
  }

  /** Whether a value is a `CrabletError`, also one of another copy of the package or of another realm. */
  static is(value: unknown): value is CrabletError {
    return typeof value === "object" && value !== null && BRAND in value;
  }
}

/** @internal What the module threw: errors cross the boundary as `ErrorInfo`. Those of a trap are made in `life.ts`. */
export function fromCore(thrown: unknown): unknown {
  return isErrorInfo(thrown) ? new CrabletError(thrown) : thrown;
}

function isErrorInfo(thrown: unknown): thrown is ErrorInfo {
  return typeof thrown === "object" && thrown !== null && "kind" in thrown && !(thrown instanceof Error);
}

/** @internal The sentence of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  if (typeof thrown === "object" && thrown !== null && "message" in thrown) return String(thrown.message);
  return String(thrown);
}

/** @internal */
export function invalidInput(message: string): CrabletError {
  return new CrabletError({ kind: "invalid-input", message });
}
