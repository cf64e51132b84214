/** The kinds of error of the whole project, of which docs/errors.md says more. Kinds may be added. */
export type ErrorKind =
  /** The key or token was missing, wrong or not allowed to do this. */
  | "auth"
  /** Too many requests or tokens for now. */
  | "rate-limit"
  /** The provider has no capacity at the moment. */
  | "overloaded"
  /** The account's credit or plan is used up: waiting does not help. */
  | "quota"
  /** The input is longer than the model's context window. */
  | "context-overflow"
  /** The request was refused as wrong, unknown models included. */
  | "bad-request"
  /** A safety filter stopped the input or the output. */
  | "content-filter"
  /** The peer failed inside. */
  | "server"
  /** No connection, or it broke before an answer. */
  | "network"
  /** Nothing came in time. */
  | "timeout"
  /** The stream ended before its end marker. */
  | "stream-truncated"
  /** The stream's bytes were not what the protocol says. */
  | "malformed-stream"
  /** A tool call's input was cut off or is not what the tool takes. */
  | "malformed-tool-call"
  /** The caller stopped it. */
  | "aborted"
  /** The connection to an MCP server or its process ended. */
  | "connection-closed"
  /** The MCP server no longer knows the session. */
  | "session-expired"
  /** The MCP server answered with a JSON-RPC error. */
  | "rpc"
  /** The peer broke its protocol. */
  | "protocol"
  /** No protocol revision in common. */
  | "unsupported-version"
  /** The caller's own input is wrong. */
  | "invalid-input"
  /** The session is already running something. */
  | "busy"
  /** A limit of steps, tokens, cost, time or size was reached. */
  | "limit"
  /** The store could not save or load. */
  | "storage"
  /** Somebody else wrote the same session. */
  | "conflict"
  /** A defect in crablet itself. */
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
  readonly kind!: ErrorKind;
  readonly retryable!: boolean;
  readonly status?: number;
  readonly code?: string;
  readonly retryAfterMs?: number;
  /** @internal */
  readonly [BRAND] = true;

  /** An error of this kind; `retryable` is false by default, and the options are those of `Error`. */
  constructor(info: Omit<ErrorInfo, "retryable"> & { readonly retryable?: boolean }, options?: ErrorOptions) {
    super(info.message, options);
    this.name = "CrabletError";
    Object.assign(this, dataOf(info));
  }

  /** The error as plain data, for `JSON.stringify`. */
  toJSON(): ErrorInfo {
    return dataOf(this);
  }

  /** Whether a value is a `CrabletError`, also one of another copy of the package or of another realm. */
  static is(value: unknown): value is CrabletError {
    return typeof value === "object" && value !== null && BRAND in value;
  }
}

function dataOf({
  kind,
  message,
  retryable = false,
  status,
  code,
  retryAfterMs,
}: Omit<ErrorInfo, "retryable"> & { readonly retryable?: boolean }): ErrorInfo {
  return { kind, message, retryable, status, code, retryAfterMs } as ErrorInfo;
}

/** @internal What the module threw: errors cross the boundary as `ErrorInfo`. Those of a trap are made in `life.ts`. */
export function fromCore(thrown: unknown): unknown {
  return isErrorInfo(thrown) ? new CrabletError(thrown) : thrown;
}

/** @internal Calls the module, and throws what it throws as an error of the package. */
export function crossing<Value>(call: () => Value): Value {
  try {
    return call();
  } catch (thrown) {
    throw fromCore(thrown);
  }
}

function isErrorInfo(thrown: unknown): thrown is ErrorInfo {
  return typeof thrown === "object" && thrown !== null && "kind" in thrown && !(thrown instanceof Error);
}

/** @internal The sentence of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  try {
    return String((thrown as { message?: unknown } | null | undefined)?.message ?? thrown);
  } catch {
    // Not everything can be made a text.
    return typeof thrown;
  }
}

/**
 * Looks whether each member of options is one of these names: what was meant by another would be missing without a word.
 *
 * @throws CrabletError `invalid-input` that names it, and never shows what it holds.
 *
 * @internal
 */
export function checkOptions(options: object, of: string, names: readonly string[]): void {
  for (const name of Object.keys(options))
    if (!names.includes(name)) throw invalidInput(`${of} has no option "${name}"`);
}

/** @internal */
export function invalidInput(message: string): CrabletError {
  return new CrabletError({ kind: "invalid-input", message });
}
