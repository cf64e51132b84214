/// <reference lib="esnext.disposable" preserve="true" />
import type { CoreMcp, CoreRequest } from "./core.js";
import { invalidInput } from "./error.js";
import { toJson } from "./json.js";
import { appOf, appUriOf, type McpApp } from "./mcp-app.js";
import { notify } from "./notify.js";
import { closeConnection, type Connection, listOf, settled } from "./mcp-connection.js";
import type {
  McpCompletion,
  McpCompletionReference,
  McpLogLevel,
  McpProgress,
  McpPrompt,
  McpPromptResult,
  McpResource,
  McpResourceContents,
  McpResourceTemplate,
  McpResult,
  McpServerInfo,
  McpTool,
} from "./mcp-protocol.js";

/** Options of one request. */
export interface McpCallOptions {
  /** Cancels it, at the server too. */
  readonly signal?: AbortSignal;
  /** Is told how far it is. What it throws goes to `console.error` and ends nothing. */
  readonly onProgress?: (progress: McpProgress) => void;
  /** The most milliseconds without anything from the server about it. Default 120 000. */
  readonly idleTimeoutMs?: number;
  /** The most milliseconds altogether. Default: no limit. */
  readonly timeoutMs?: number;
}

/** Options of reading something that a server may allow to be kept for a while (`ttlMs`). */
export interface McpReadOptions {
  readonly signal?: AbortSignal;
  /** Ask the server even though its last answer is still good. Default: false. */
  readonly refresh?: boolean;
}

/**
 * A connection to an MCP server. Calls run beside one another. What the server refuses throws a `CrabletError` of kind `rpc`
 * with the server's number as its `code`; other kinds say what broke: `network`, `protocol`, `timeout`, `connection-closed`,
 * `session-expired`, `auth`.
 */
export class McpClient implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #isShared: boolean;
  #isClosed = false;

  /** @internal A shared one is closed by its agent. */
  constructor(connection: Connection, { isShared = false } = {}) {
    this.#connection = connection;
    this.#isShared = isShared;
    if (!isShared) registry.register(this, connection.server, this);
  }

  /** What the server said of itself when it was connected. */
  get server(): McpServerInfo {
    return this.#connection.info;
  }

  /** All tools of the server, all pages of the list. */
  async tools(options?: McpReadOptions): Promise<readonly McpTool[]> {
    return listOf(this.#open(), "tools", options);
  }

  /** All resources of the server, all pages of the list. Empty when it offers none; so are the other lists. */
  async resources(options?: McpReadOptions): Promise<readonly McpResource[]> {
    return listOf(this.#open(), "resources", options);
  }

  /** The families of resources. */
  async resourceTemplates(options?: McpReadOptions): Promise<readonly McpResourceTemplate[]> {
    return listOf(this.#open(), "resourceTemplates", options);
  }

  /** All prompts of the server. */
  async prompts(options?: McpReadOptions): Promise<readonly McpPrompt[]> {
    return listOf(this.#open(), "prompts", options);
  }

  /**
   * Calls a tool. A tool that fails gives a result with `isError`; what cannot be asked at all throws. A call that the server
   * makes a task is waited for all the same.
   *
   * @throws CrabletError `protocol` also when the value does not fit the tool's output schema.
   */
  async callTool(name: string, input: unknown = {}, options: McpCallOptions = {}): Promise<McpResult> {
    const result: Partial<McpResult> = await this.#ask("tools/call", { name, arguments: input }, options);
    return { ...result, content: result.content ?? [], isError: result.isError ?? false };
  }

  /** The contents of a resource, which may have several parts. */
  async readResource(uri: string, options: McpReadOptions = {}): Promise<readonly McpResourceContents[]> {
    const { contents = [] } = await this.#ask<{ contents?: McpResourceContents[] }>("resources/read", { uri }, options);
    return contents;
  }

  /**
   * The user interface of a tool, with its security metadata; `undefined` for a tool without one. Showing it, and answering
   * its messages, is the page's.
   *
   * @throws CrabletError `protocol` when the resource is no such document.
   */
  async app(tool: McpTool, options?: McpReadOptions): Promise<McpApp | undefined> {
    const uri = appUriOf(tool);
    return uri === undefined ? undefined : appOf(uri, await this.readResource(uri, options));
  }

  /** Asks to be told of changes of a resource, by the event `resource-updated`. Asked for again when a session is replaced. */
  async subscribe(uri: string, options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await this.#ask("resources/subscribe", { uri }, options);
  }

  /** Takes `subscribe` back. */
  async unsubscribe(uri: string, options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await this.#ask("resources/unsubscribe", { uri }, options);
  }

  /** The messages of a prompt with these arguments. */
  async prompt(
    name: string,
    input: Readonly<Record<string, string>> = {},
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<McpPromptResult> {
    return this.#ask("prompts/get", { name, arguments: input }, options);
  }

  /**
   * Suggestions for a value that begins like `argument.value`. `context` has the values that are already known of the other
   * arguments.
   */
  async complete(
    reference: McpCompletionReference,
    argument: { readonly name: string; readonly value: string },
    options: { readonly signal?: AbortSignal; readonly context?: Readonly<Record<string, string>> } = {},
  ): Promise<McpCompletion> {
    const { context, ...rest } = options;
    const params = { ref: reference, argument, ...(context && { context: { arguments: context } }) };
    const { completion } = await this.#ask<{ completion?: McpCompletion }>("completion/complete", params, rest);
    return completion ?? { values: [] };
  }

  /** From which level on the server tells what it logs, by the event `log`. */
  async setLogLevel(level: McpLogLevel, options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await this.#ask("logging/setLevel", { level }, options);
  }

  /** Sends any other request and gives its result as it came. */
  async request<Result = unknown>(
    method: string,
    params: Readonly<Record<string, unknown>> = {},
    options: McpCallOptions = {},
  ): Promise<Result> {
    return this.#ask(method, params, options);
  }

  /** Tells the server that the roots are others now. */
  rootsChanged(): void {
    this.#open().server.notify("notifications/roots/list_changed");
  }

  /** Ends the connection. Calls under way fail with `connection-closed`. The connection of an agent ends with the agent. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#isShared) return;
    registry.unregister(this);
    await closeConnection(this.#connection);
  }

  /** Ends the connection. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #ask<Result>(method: string, params: unknown, options: McpCallOptions & McpReadOptions): Promise<Result> {
    const { signal, onProgress, ...limits } = options;
    const { core, server } = this.#open();
    const request: CoreRequest = { method, params, ...limits };
    const text = toJson(request, `the parameters of ${method}`);
    const progress =
      onProgress && ((data: string) => queueMicrotask(() => notify("onProgress", () => onProgress(JSON.parse(data)))));
    return JSON.parse(await settled(core, signal, (...settle) => server.request(text, progress, ...settle)));
  }

  #open(): Connection {
    if (this.#isClosed) throw invalidInput("this connection is closed");
    return this.#connection;
  }
}

const registry = /* @__PURE__ */ new FinalizationRegistry<CoreMcp>((core) => core.free());
