import { invalidInput } from "./error.js";
import { load } from "./load.js";
import { settled } from "./mcp-connection.js";
import type { WebSocketClass } from "./mcp.js";
import { SHIM_URL } from "./shim-url.js";

/** Options of `mcp.pairShim()`. */
export interface McpPairOptions {
  /** The twelve letters and digits that `crablet-shim pair` shows, as a person typed them. */
  readonly code: string;
  /** Where the shim listens. Default `ws://127.0.0.1:6735`. */
  readonly url?: string | URL;
  /** For platforms that have none, such as Node before 22. Default: the platform's own. */
  readonly WebSocket?: WebSocketClass;
  readonly signal?: AbortSignal;
}

/** What a pairing gives. */
export interface McpPairing {
  /** For `mcp.shim()`. Keep it where only this page or extension can read it. */
  readonly token: string;
  /** The names of the servers that it opens. */
  readonly servers: readonly string[];
}

/** Gives a page that has no token yet one, for the code that `crablet-shim pair` shows. */
export async function pairShim({ code, url = SHIM_URL, WebSocket, signal }: McpPairOptions): Promise<McpPairing> {
  if (!code) throw invalidInput("mcp.pairShim() needs the code that `crablet-shim pair` shows");
  const core = await load();
  const socket = WebSocket as typeof globalThis.WebSocket | undefined;
  return JSON.parse(
    await settled(core, signal, (...settle) => core.McpHandle.pair(String(url), code, socket, ...settle)),
  );
}
