import { invalidInput } from "../error.js";
import type { McpPort } from "../mcp-port.js";
import type { JsonSchema } from "../schema.js";
import type { MaybePromise } from "../tool.js";
import { type Caller, Catalog, type CatalogOptions } from "./catalog.js";
import { type Complete, Connection, type Served } from "./connection.js";
import type { Fields } from "./protocol.js";

/** How a server is made. */
export interface McpServerOptions extends CatalogOptions {
  readonly name: string;
  readonly version: string;
  /** The name to show. */
  readonly title?: string;
  /** How to use the server, for the client's model. */
  readonly instructions?: string;
  /** Whether log messages are sent. Default: false. */
  readonly logging?: boolean;
  /** The most entries of one page of a list. Default: 100. */
  readonly pageSize?: number;
  /** Asked before each call of a tool: why it is not available, for the client's model, or `undefined` when it is. */
  readonly available?: (tool: string) => string | undefined;
  /** Asked about calls of tools that need an approval; without it they do not run. Only `true` allows a call. */
  readonly approve?: (call: { readonly toolName: string; readonly input: unknown }) => MaybePromise<boolean>;
  /** Completes arguments of prompts and names of templates. 100 values are sent. */
  readonly complete?: Complete;
}

/** What is served to one client. */
export interface ServerConnection {
  /** Stops its calls and listens no more. The port stays open. */
  close(): void;
}

/**
 * A server. Calls run beside one another; each gets a signal that aborts when the client cancels it. What a function throws is a
 * failed result, arguments that do not fit a tool's schema never reach it.
 */
export class McpServer {
  readonly #options: McpServerOptions;
  readonly #connections = new Set<Connection>();
  #entries: Required<CatalogOptions>;
  #catalog: Catalog;

  /** @throws CrabletError `invalid-input` when something has a name that cannot be served. */
  constructor(options: McpServerOptions) {
    if (typeof options?.name !== "string" || typeof options.version !== "string")
      throw invalidInput("a server has a name and a version: new McpServer({ name, version, tools })");
    this.#options = options;
    const { tools = {}, resources = {}, prompts = {} } = options;
    this.#entries = { tools, resources, prompts };
    this.#catalog = new Catalog(this.#entries);
  }

  /** Adds tools, such as an agent's own; one replaces an earlier one of its name. Clients are told. */
  expose(tools: NonNullable<CatalogOptions["tools"]>): this {
    return this.update({ tools: { ...this.#entries.tools, ...tools } });
  }

  /** Serves other tools, resources or prompts from now on; what is left out stays. Clients are told which lists changed. */
  update(entries: CatalogOptions): this {
    const next = { ...this.#entries, ...entries };
    this.#catalog = new Catalog(next);
    this.#entries = next;
    for (const kind of ["tools", "prompts", "resources"] as const)
      if (entries[kind] !== undefined) for (const connection of this.#connections) connection.listChanged(kind);
    return this;
  }

  /** Tells clients that follow a resource that it changed. */
  resourceUpdated(uri: string): void {
    for (const connection of this.#connections) connection.resourceUpdated(uri);
  }

  /**
   * Serves the client at the other end of a port: a `MessagePort`, a `Worker`, one of `mcp.pair()`, or anything with the same
   * contract. Each message is one JSON-RPC object, or its text. Aborting the signal closes the connection.
   */
  connect(port: McpPort, options: { readonly signal?: AbortSignal } = {}): ServerConnection {
    const connection = this.open((message) => port.postMessage(message));
    const listener = ({ data }: { readonly data: unknown }): void => connection.receive(data);
    const close = (): void => {
      port.removeEventListener?.("message", listener);
      options.signal?.removeEventListener("abort", close);
      connection.close();
    };
    port.addEventListener("message", listener);
    port.start?.();
    options.signal?.addEventListener("abort", close, { once: true });
    if (options.signal?.aborted) close();
    return { close };
  }

  /** @internal A connection that is told of changes until it is closed. */
  open(send: (message: Fields, about?: string | number) => void, caller?: Caller): Connection {
    const connection = new Connection(
      () => this.#served(),
      send,
      caller,
      () => this.#connections.delete(connection),
    );
    this.#connections.add(connection);
    return connection;
  }

  /** @internal The JSON Schema of a tool's arguments. */
  inputSchema(tool: string): JsonSchema | undefined {
    return this.#catalog.tools.get(tool)?.schema.jsonSchema;
  }

  #served(): Served {
    const {
      name,
      version,
      title,
      instructions,
      logging = false,
      pageSize = 100,
      available,
      approve,
      complete,
    } = this.#options;
    return {
      info: title === undefined ? { name, version } : { name, title, version },
      instructions,
      logging,
      pageSize: Math.max(1, pageSize),
      catalog: this.#catalog,
      awaitsTools: this.#options.tools !== undefined,
      available,
      approve,
      complete,
    };
  }
}
