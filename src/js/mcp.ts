import type { Core, CoreMcp, CoreServerFunctions, Settle } from "./core.js";
import { fromCore, invalidInput } from "./error.js";
import { toJson } from "./json.js";
import { load } from "./load.js";
import type { FilePart, TextPart } from "./message.js";
import type { JsonSchema } from "./schema.js";
import type { MaybePromise } from "./tool.js";

/** An MCP server and how it is reached. Made by `mcp.http()`, `mcp.shim()` and `mcp.custom()`. */
export type McpServer =
  | { readonly type: "http"; readonly url: string; readonly headers?: HeadersInit; readonly fetch?: typeof fetch }
  | {
      readonly type: "shim";
      readonly url: string;
      readonly server: string;
      readonly token: string;
      readonly WebSocket?: WebSocketClass;
    }
  | { readonly type: "custom"; readonly request: McpRequest };

/**
 * Answers one JSON-RPC message of an MCP client: the answer to a request, `undefined` to a notification. What it throws fails
 * the request.
 */
export type McpRequest = (message: unknown, context: { readonly signal: AbortSignal }) => MaybePromise<unknown>;

/** A class that keeps to the contract of the platform's `WebSocket`: that of the package `ws` or `undici`. */
export type WebSocketClass = new (url: string, protocols?: string[]) => object;

/** A tool of an MCP server. */
export interface McpTool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema?: JsonSchema;
}

/** What a call of an MCP tool gave. */
export interface McpResult {
  readonly content: readonly (TextPart | FilePart)[];
  readonly structuredContent?: unknown;
  /** Whether the tool failed; the content says how. */
  readonly isError: boolean;
}

/** How far a call has come. */
export interface McpProgress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

/** Where `crablet-shim serve` listens unless told otherwise. */
const SHIM_URL = "ws://127.0.0.1:6735";

/** MCP servers. */
export const mcp = {
  /** A server over Streamable HTTP. */
  http(url: string | URL, options: { readonly headers?: HeadersInit; readonly fetch?: typeof fetch } = {}): McpServer {
    return { type: "http", url: String(url), ...options };
  },

  /**
   * A local server that `crablet-shim serve` runs, by its name in the shim's configuration. `WebSocket` is for platforms that
   * have none, such as Node before 22. Default: the platform's own.
   *
   * @throws CrabletError `invalid-input` without `server` or `token`, and when it connects where there is no `WebSocket`.
   */
  shim({
    server,
    token,
    url = SHIM_URL,
    WebSocket,
  }: {
    readonly server: string;
    readonly token: string;
    readonly url?: string | URL;
    readonly WebSocket?: WebSocketClass;
  }): McpServer {
    if (!server || !token)
      throw invalidInput("mcp.shim() needs the name of a server and the token that `crablet-shim` gave for this page");
    return { type: "shim", server, token, url: String(url).replace(/\/+$/, ""), ...(WebSocket && { WebSocket }) };
  },

  /** Any request and reply function: a message port of your own, a server in the same page, a test. */
  custom(options: { readonly request: McpRequest }): McpServer {
    return { type: "custom", request: options.request };
  },

  /**
   * Connects to a server without an agent.
   *
   * @throws CrabletError `network` when it cannot be reached, and the kinds of MCP.
   */
  async connect(server: McpServer, options: { readonly signal?: AbortSignal } = {}): Promise<McpClient> {
    return new McpClient(await connectServer("server", server, options.signal));
  },
};

/** A connection to an MCP server. */
export class McpClient implements AsyncDisposable {
  readonly #connection: Connection;
  #isClosed = false;

  /** @internal */
  constructor(connection: Connection) {
    this.#connection = connection;
    registry.register(this, connection.server, this);
  }

  /** All tools of the server, all pages of the list. */
  async tools(options: { readonly signal?: AbortSignal } = {}): Promise<readonly McpTool[]> {
    return toolsOf(this.#open(), options.signal);
  }

  /** Calls a tool. A tool that fails gives a result with `isError`; what cannot be asked at all throws. */
  async callTool(
    name: string,
    input: unknown = {},
    options: { readonly signal?: AbortSignal; readonly onProgress?: (progress: McpProgress) => void } = {},
  ): Promise<McpResult> {
    const { signal, onProgress } = options;
    const progress = onProgress && ((data: string) => onProgress(JSON.parse(data)));
    const { core, server } = this.#open();
    const text = toJson(input, `the input of ${name}`);
    return JSON.parse(await settled(core, signal, (...settle) => server.callTool(name, text, progress, ...settle)));
  }

  /** Ends the connection. Calls under way fail with `connection-closed`. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    registry.unregister(this);
    await closeConnection(this.#connection);
  }

  /** Ends the connection. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #open(): Connection {
    if (this.#isClosed) throw invalidInput("this connection is closed");
    return this.#connection;
  }
}

/** @internal A connection in the module, and the instance that it is in. */
export interface Connection {
  readonly core: Core;
  readonly server: CoreMcp;
}

/** @internal */
export async function connectServer(name: string, options: McpServer, signal?: AbortSignal): Promise<Connection> {
  signal?.throwIfAborted();
  if (options.type === "shim" && options.WebSocket === undefined && globalThis.WebSocket === undefined) {
    throw invalidInput(
      "mcp.shim() needs a WebSocket, and this platform has none (Node has one from 22 on). Use a newer Node, or give the class " +
        'of a package: import { WebSocket } from "ws"; mcp.shim({ server, token, WebSocket })',
    );
  }
  const core = await load();
  const config = toJson(configOf(name, options), "the MCP server");
  const server = crossing(() => new core.McpHandle(config, functionsOf(options)));
  try {
    await settled(core, signal, (...settle) => server.ready(...settle));
    return { core, server };
  } catch (thrown) {
    server.free();
    throw thrown;
  }
}

/** @internal */
export async function closeConnection({ core, server }: Connection): Promise<void> {
  // With its instance a connection is gone too.
  if (core.life.error !== undefined) return;
  await settled(core, undefined, (...settle) => server.close(...settle));
  server.free();
}

/** @internal */
export async function toolsOf({ core, server }: Connection, signal?: AbortSignal): Promise<McpTool[]> {
  return JSON.parse(await settled(core, signal, (...settle) => server.tools(...settle)));
}

/** @internal A call of the module that takes time, as a promise that a signal can reject. */
export async function settled(
  { CancelHandle, life }: Core,
  signal: AbortSignal | undefined,
  call: (...settle: Settle) => void,
): Promise<string> {
  signal?.throwIfAborted();
  const cancel = new CancelHandle();
  const abort = (): void => cancel.cancel();
  signal?.addEventListener("abort", abort, { once: true });
  let forget = (): void => {};
  try {
    return await new Promise<string>((resolve, reject) => {
      forget = life.onEnd(reject);
      call(cancel, resolve, reject);
    });
  } catch (thrown) {
    signal?.throwIfAborted();
    throw fromCore(thrown);
  } finally {
    forget();
    signal?.removeEventListener("abort", abort);
    cancel.free();
  }
}

function functionsOf(server: McpServer): CoreServerFunctions {
  return {
    fetch: server.type === "http" ? server.fetch : undefined,
    WebSocket: server.type === "shim" ? (server.WebSocket as typeof WebSocket | undefined) : undefined,
    request(message) {
      const controller = new AbortController();
      const answer = async (): Promise<string | undefined> => {
        if (server.type !== "custom") return undefined;
        const reply = await server.request(JSON.parse(message), { signal: controller.signal });
        return reply === undefined ? undefined : toJson(reply, "the answer of the MCP server");
      };
      return { result: answer(), cancel: () => controller.abort() };
    },
  };
}

function configOf(name: string, server: McpServer): Record<string, unknown> {
  switch (server.type) {
    case "http":
      return { name, type: "http", url: server.url, headers: [...new Headers(server.headers)] };
    case "shim":
      return { name, type: "shim", url: server.url, server: server.server, token: server.token };
    case "custom":
      return { name, type: "custom" };
  }
}

function crossing<Value>(call: () => Value): Value {
  try {
    return call();
  } catch (thrown) {
    throw fromCore(thrown);
  }
}

const registry = /* @__PURE__ */ new FinalizationRegistry<CoreMcp>((core) => core.free());
