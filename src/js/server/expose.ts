/// <reference lib="esnext.disposable" preserve="true" />
import { CrabletError, invalidInput, messageOf } from "../error.js";
import type { WebSocketClass } from "../mcp.js";
import { notify } from "../notify.js";
import { SHIM_URL } from "../shim-url.js";
import type { CatalogOptions, ServerTool } from "./catalog.js";
import { McpServer, type McpServerOptions, type ServerConnection } from "./mcp-server.js";
import { fields } from "./protocol.js";
import { ShimLink } from "./shim-link.js";
import { ShimToken, shimAuthority } from "./shim-proof.js";
import { fromWebMcp, type ToolSource, type WebMcpTool } from "./web-mcp.js";

/** What can be offered: tools by name, tools in WebMCP's shape, or a list that changes by itself, such as `documentTools()`. */
export type ExposedTools = NonNullable<CatalogOptions["tools"]> | readonly WebMcpTool[] | ToolSource;

/** How tools are offered. */
export interface ExposeOptions
  extends Partial<Pick<McpServerOptions, "name" | "version" | "title" | "available" | "approve">> {
  readonly shim: {
    /** What `mcp.pairShim()` or `crablet-shim grant` gave for this page, with `--expose`. */
    readonly token: string;
    /** Where the shim listens. Default `ws://127.0.0.1:6735`. */
    readonly url?: string | URL;
    /** For platforms that have none, such as Node before 22. Default: the platform's own. */
    readonly WebSocket?: WebSocketClass;
  };
  /** Is told whenever the state changes. What it throws goes to `console.error` and ends nothing. */
  readonly onState?: (state: ExposedState) => void;
  /** Ends it when it aborts. */
  readonly signal?: AbortSignal;
}

/** How an exposing is at the moment. Replaced as a whole when something changes. */
export interface ExposedState {
  /** `waiting` between two attempts to reach the shim; `closed` for good. */
  readonly status: "connecting" | "connected" | "waiting" | "closed";
  /** Why the last attempt failed, tools could not be listed, or it is closed although nobody closed it. */
  readonly error?: CrabletError;
  /** What became of each tool, as the shim last said. */
  readonly tools: readonly ExposedToolState[];
}

/** What became of a tool. */
export interface ExposedToolState {
  readonly name: string;
  /** What agents call it, when they get it. */
  readonly offeredAs?: string;
  /** Why they do not. */
  readonly withheld?: string;
  /** Whether the user can let it in with `crablet-shim consent`. */
  readonly awaitsConsent?: boolean;
}

/** Tools that are offered. */
export interface Exposed extends AsyncDisposable {
  readonly state: ExposedState;
  /** Offers other tools from now on. Agents are told; those that are new or changed may wait for the user's consent. */
  update(tools: ExposedTools): void;
  /** Offers nothing any more. Calls at work are aborted, and fail for the agents that made them. */
  close(): Promise<void>;
}

/**
 * Offers tools of this page, extension or program to the agents of this machine that have `crablet-shim expose`. The connection
 * is made in the background and again whenever it breaks, until it is closed; a socket that merely breaks loses no call.
 *
 * @throws CrabletError `invalid-input` for what is no token, an address that is not this machine's, a name that no tool can
 * have, and where there is no `WebSocket`.
 */
export function expose(tools: ExposedTools, options: ExposeOptions): Exposed {
  return new Exposing(tools, options);
}

class Exposing implements Exposed {
  readonly #server: McpServer;
  readonly #link: ShimLink;
  readonly #onState: ((state: ExposedState) => void) | undefined;
  #session: ServerConnection | undefined;
  #receive: ((event: { readonly data: unknown }) => void) | undefined;
  #unsubscribe: (() => void) | undefined;
  #source: ToolSource | undefined;
  #state: ExposedState = { status: "connecting", tools: [] };

  constructor(tools: ExposedTools, { shim, onState, signal, name, version, ...served }: ExposeOptions) {
    const WebSocket = shim?.WebSocket ?? (globalThis.WebSocket as WebSocketClass | undefined);
    if (WebSocket === undefined)
      throw invalidInput("there is no WebSocket here: give the class of a package as shim.WebSocket");
    const token = new ShimToken(String(shim?.token ?? ""));
    const url = String(shim.url ?? SHIM_URL).replace(/\/+$/, "");
    const authority = shimAuthority(url);
    this.#onState = onState;
    this.#server = new McpServer({
      ...served,
      name: name ?? (globalThis.document?.title || "page"),
      version: version ?? "1.0.0",
      logging: true,
      tools: {},
    });
    this.update(tools);
    this.#link = new ShimLink(
      { url, authority, token, WebSocket },
      {
        begun: () => this.#begin(),
        received: (text) => this.#received(text),
        ended: () => this.#end(),
        changed: (status, error) => {
          const rest = status === "connected" ? {} : { error: error ?? this.#state.error };
          this.#change({ status, tools: this.#state.tools, ...(rest.error !== undefined && { error: rest.error }) });
        },
      },
    );
    signal?.addEventListener("abort", () => void this.close(), { once: true });
    if (signal?.aborted) void this.close();
  }

  get state(): ExposedState {
    return this.#state;
  }

  update(tools: ExposedTools): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#source = isSource(tools) ? tools : undefined;
    if (isSource(tools)) {
      this.#unsubscribe = tools.subscribe(() => void this.#list(tools));
      void this.#list(tools);
    } else this.#server.update({ tools: byName(tools) });
  }

  async close(): Promise<void> {
    this.#unsubscribe?.();
    this.#source = undefined;
    this.#link.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The tools of a source, unless another took its place. */
  async #list(source: ToolSource): Promise<void> {
    try {
      const tools = byName(await source.tools());
      if (this.#source === source) this.#server.update({ tools });
    } catch (thrown) {
      const error = CrabletError.is(thrown) ? thrown : invalidInput(`the tools cannot be listed: ${messageOf(thrown)}`);
      if (this.#source === source) this.#change({ ...this.#state, error });
    }
  }

  #begin(): void {
    this.#session = this.#server.connect({
      postMessage: (message) => this.#send(message as Readonly<Record<string, unknown>>),
      addEventListener: (_type, listener) => {
        this.#receive = listener;
      },
    });
  }

  #end(): void {
    this.#session?.close();
    this.#session = undefined;
    this.#receive = undefined;
    this.#change({ ...this.#state, tools: [] });
  }

  #send(message: Readonly<Record<string, unknown>>): void {
    const isAnswer = message.id !== undefined;
    // What an agent waits for is always sent.
    if (!isAnswer && message.method !== "notifications/tools/list_changed" && this.#link.isFull) return;
    if (this.#link.send(JSON.stringify(message)) || !isAnswer) return;
    const error = { code: -32603, message: "the result is larger than 16 MiB" };
    this.#link.send(JSON.stringify({ jsonrpc: "2.0", id: message.id, error }));
  }

  #received(text: string): void {
    // The shim's own word about the tools is not for the server.
    const message = text.includes(EXPOSED) ? fields(JSON.parse(text)) : undefined;
    if (message?.method !== EXPOSED) {
      this.#receive?.({ data: text });
      return;
    }
    const tools = fields(message.params)?.tools;
    if (Array.isArray(tools)) this.#change({ ...this.#state, tools: tools as readonly ExposedToolState[] });
  }

  #change(state: ExposedState): void {
    this.#state = state;
    notify("onState", () => this.#onState?.(state));
  }
}

/** The notification by which the shim tells what became of the tools. */
const EXPOSED = "notifications/crablet/exposed";

function isSource(tools: ExposedTools): tools is ToolSource {
  return typeof (tools as ToolSource).subscribe === "function" && typeof (tools as ToolSource).tools === "function";
}

function byName(tools: NonNullable<CatalogOptions["tools"]> | readonly WebMcpTool[]): Record<string, ServerTool> {
  if (!Array.isArray(tools)) return { ...(tools as NonNullable<CatalogOptions["tools"]>) };
  return Object.fromEntries((tools as readonly WebMcpTool[]).map((tool) => [tool.name, fromWebMcp(tool)]));
}
