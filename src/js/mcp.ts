import { invalidInput } from "./error.js";
import { McpClient } from "./mcp-client.js";
import { connectServer } from "./mcp-connection.js";
import type { McpHandlers } from "./mcp-handlers.js";
import { type McpPort, portPair } from "./mcp-port.js";
import type { McpEraRecord, McpEvent } from "./mcp-protocol.js";
import { nativeMessaging } from "./mcp-native-messaging.js";
import { pairShim } from "./mcp-pairing.js";
import type { OAuthOptions } from "./oauth.js";
import { SHIM_URL } from "./shim-url.js";
import type { MaybePromise } from "./tool.js";

/** What every MCP server can be given: handlers of its questions, and how it is spoken to. */
export interface McpOptions extends McpHandlers {
  /** Is told what happens on the connection. What it throws goes to `console.error` and ends nothing. */
  readonly onEvent?: (event: McpEvent) => void;
  /** Which of the protocol's two eras to speak. Default `auto`: find out at the first contact. */
  readonly era?: "auto" | "stateless" | "handshake";
  /** The record of an earlier `connected` event, so that this connection need not find out. */
  readonly knownEra?: McpEraRecord;
  /** What the client calls itself. Default: crablet. */
  readonly client?: { readonly name: string; readonly version: string; readonly title?: string };
  /** Whether the page shows the user interfaces of tools (MCP Apps); see `McpClient.app`. Default: false. */
  readonly apps?: boolean;
  /** Extensions of the protocol that the caller handles, with their settings. */
  readonly extensions?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** Options of `mcp.http()`. */
export interface McpHttpOptions extends McpOptions {
  /** Sent with every request. */
  readonly headers?: HeadersInit;
  /** How tokens are obtained when the server wants some. */
  readonly auth?: OAuthOptions;
  /** Default: the platform's. */
  readonly fetch?: typeof fetch;
}

/** Options of `mcp.shim()`. */
export interface McpShimOptions extends McpOptions {
  /** The server's name in the shim's configuration. */
  readonly server: string;
  /** What `mcp.pairShim()` or `crablet-shim grant` gave for this page. */
  readonly token: string;
  /** Where the shim listens. Default `ws://127.0.0.1:6735`. */
  readonly url?: string | URL;
  /**
   * The `resume` of an earlier `connected` event, by which a page that was loaded anew attaches to the process that it left
   * running: a session that is resumed then gets the results of the tools that were at work in it. When that process is gone
   * (60 s after its page, unless the shim says otherwise) a new one is started. Of use only with the same token, and by one
   * page at a time.
   */
  readonly resume?: string;
  /** For platforms that have none, such as Node before 22. Default: the platform's own. */
  readonly WebSocket?: WebSocketClass;
}

/** An MCP server and how it is reached. Made by the functions of `mcp`. */
export type McpServer =
  | (McpHttpOptions & { readonly type: "http"; readonly url: string })
  | (McpShimOptions & { readonly type: "shim"; readonly url: string })
  | (McpOptions & { readonly type: "custom"; readonly request: McpRequest })
  | (McpOptions & { readonly type: "port"; readonly port: McpPort });

/**
 * Answers one JSON-RPC message of an MCP client: the answer to a request, `undefined` to a notification. A list of messages
 * that ends with the answer carries notifications of the server too. What it throws fails the request.
 */
export type McpRequest = (message: unknown, context: { readonly signal: AbortSignal }) => MaybePromise<unknown>;

/** A class that keeps to the contract of the platform's `WebSocket`: that of the package `ws` or `undici`. */
export type WebSocketClass = new (url: string, protocols?: string[]) => object;

/** MCP servers. */
export const mcp = {
  /** A server over Streamable HTTP, or over HTTP+SSE where that is what it has (revision 2024-11-05). */
  http(url: string | URL, options: McpHttpOptions = {}): McpServer {
    // What is inherited can be read, and is not shown where a server is printed, or written as JSON: it holds tokens.
    return Object.create({ ...options, type: "http", url: String(url) });
  },

  /**
   * A local server that `crablet-shim serve` runs, by its name in the shim's configuration.
   *
   * @throws CrabletError `invalid-input` without `server` or `token`, and when it connects where there is no `WebSocket`.
   */
  shim(options: McpShimOptions): McpServer {
    if (!options.server || !options.token)
      throw invalidInput("mcp.shim() needs the name of a server and the token that `crablet-shim` gave for this page");
    return Object.create({ ...options, type: "shim", url: String(options.url ?? SHIM_URL).replace(/\/+$/, "") });
  },

  /**
   * A local server that `crablet-shim` runs, by its name in the shim's configuration, for an extension that the shim was
   * installed for (`crablet-shim install`): the browser starts the shim, so that there is neither port nor token. Works where
   * an extension has `runtime.connectNative`, with the permission `nativeMessaging`. The servers end with the service worker or
   * page that connected.
   *
   * @throws CrabletError `invalid-input` without `server`; when it connects also where there is no native messaging, `network`
   * when the shim is not installed or ended, and `auth` when this extension may not use it or the server.
   */
  nativeMessaging,

  /**
   * Obtains a token for this page or extension from the shim, with a code that a person reads from the terminal of
   * `crablet-shim pair` and types. Code and token do not travel. A code works once, for five minutes.
   *
   * @throws CrabletError `invalid-input` for what is no code, `auth` when it is wrong or too old, `network` when no shim is
   * reached or none waits for a code from here.
   */
  pairShim,

  /** Any request and reply function: a queue of your own, a server in the same page, a test. */
  custom(options: McpOptions & { readonly request: McpRequest }): McpServer {
    return { ...options, type: "custom" };
  },

  /**
   * A server at the other end of a `MessagePort`, or of anything with its contract, such as a `Worker`: each message is one
   * JSON-RPC object. A port serves one connection at a time; closing the connection leaves the port open.
   */
  port(port: McpPort, options: McpOptions = {}): McpServer {
    return { ...options, type: "port", port };
  },

  /** Two ports that are joined, for a server in the same program: one for `mcp.port()`, the other for the server. */
  pair: portPair,

  /**
   * Connects to a server without an agent.
   *
   * @throws CrabletError `network` when it cannot be reached, and the kinds of MCP.
   */
  async connect(
    server: McpServer,
    options: { readonly signal?: AbortSignal; readonly name?: string } = {},
  ): Promise<McpClient> {
    return new McpClient(await connectServer(options.name ?? "server", server, options.signal));
  },
};
