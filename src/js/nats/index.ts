/**
 * MCP servers over NATS: those that `crablet-shim serve --nats` serves, and services of one's own.
 *
 * @packageDocumentation
 */
import { invalidInput } from "../error.js";
import type { McpOptions, McpServer } from "../mcp.js";
import type { NatsConnection, NatsEnvelope } from "./connection.js";
import { NatsPort } from "./port.js";

export type { NatsConnection, NatsEnvelope, NatsMessage, NatsRequestMessage, RpcFailure } from "./connection.js";

/** Options of `nats()`. */
export interface NatsOptions extends McpOptions {
  /** The connection, which stays the caller's: closing the MCP connection leaves it open. */
  readonly connection: NatsConnection;
  /** The name of a server that a shim serves; its subject is `mcp.NAME`, or as `prefix` says. */
  readonly server?: string;
  /** What the subjects of the shim begin with (`--nats-prefix`). Default `mcp`. */
  readonly prefix?: string;
  /** The subject itself, in place of `server`. */
  readonly subject?: string;
  /** How a service is spoken to that is not crablet-shim. Default: JSON-RPC messages as JSON. */
  readonly envelope?: NatsEnvelope;
  /**
   * Whether the service answers with more than one message: progress, signs of life. Default: true, and false with an
   * `envelope`. A service that is not crablet-shim needs false.
   */
  readonly stream?: boolean;
  /**
   * The longest time without a sign of the shim that works on a request, which gives one every two seconds: then the request
   * fails. Default 10 000 ms. Without `stream`, the longest time until the answer. Default then 180 000 ms.
   */
  readonly silenceMs?: number;
  /** What the subject begins with to which answers come, for accounts that allow a certain one only. Default `_INBOX`. */
  readonly inboxPrefix?: string;
}

/**
 * A server over NATS. Goes where every MCP server goes: `mcpServers` of an agent, `mcp.connect()`.
 *
 * A request is published once. It is sent again in two cases: when it reached nobody because the shim of its session is gone,
 * then in a new session, which a `warning` tells; and, once, when nothing more was heard of a call whose tool is listed with
 * `readOnlyHint` or `idempotentHint`. Requests fail with `network` when nobody serves the subject, `auth` when this user may not
 * publish there, `limit` when request or answer are larger than the NATS server takes, `connection-closed` when the shim that
 * took it is gone or the connection is closed, `timeout` without `stream`; the message says whether the request may have been done.
 *
 * @throws CrabletError `invalid-input` without a connection, or with neither or both of `server` and `subject`.
 */
export function nats(options: NatsOptions): McpServer {
  const { connection, server, prefix = "mcp", subject, envelope, stream, silenceMs, inboxPrefix, ...rest } = options;
  if (connection === undefined)
    throw invalidInput("nats() needs the connection of @nats-io/nats-core that it shall use");
  if ((server === undefined) === (subject === undefined))
    throw invalidInput("nats() needs the name of a server that a shim serves, or a subject; not both");
  const isStream = stream ?? envelope === undefined;
  const port = new NatsPort({
    connection,
    subject: subject ?? `${prefix}.${server}`,
    envelope,
    isStream,
    silenceMs: silenceMs ?? (isStream ? STREAM_SILENCE_MS : PLAIN_SILENCE_MS),
    inbox: `${inboxPrefix ?? "_INBOX"}.${crypto.randomUUID().replaceAll("-", "")}`,
  });
  return { ...rest, type: "port", port };
}

/** Five signs of life. */
const STREAM_SILENCE_MS = 10_000;

/** As long as other clients of such services wait. */
const PLAIN_SILENCE_MS = 180_000;
