/** A JSON object, read with care. */
export type Fields = Readonly<Record<string, unknown>>;

/** The revision of the stateless era. */
export const STATELESS = "2026-07-28";

/** The handshake revisions, oldest first. Their names are in order as texts too. */
export const HANDSHAKE: readonly string[] = ["2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

export const LATEST_HANDSHAKE = "2025-11-25";

/** The numbers of errors. */
export const CODE = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  notInitialized: -32000,
  resourceNotFound: -32002,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/** An error that is answered as one of JSON-RPC. */
export class RpcFault extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export function invalidParams(message: string): RpcFault {
  return new RpcFault(CODE.invalidParams, message);
}

/**
 * Thrown by a function of a server: what the client gave cannot be accepted, such as a `requestState` that this call has not made.
 * It is an error of the protocol (-32602), which no model reads.
 */
export function refusal(why: string): Error {
  return invalidParams(why);
}

/** The value where it is an object that is no list. */
export function fields(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

/** How much a log message matters, least first (RFC 5424). */
export const LOG_LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const;

/** How grave a log message is, from `debug` to `emergency`. */
export type LogLevel = (typeof LOG_LEVELS)[number];

export function isLogLevel(value: unknown): value is LogLevel {
  return LOG_LEVELS.includes(value as LogLevel);
}
