// How an MCP server is reached: by its address, or through crablet-shim on this machine.
import { mcp, type McpServer } from "crablet";
import { popup } from "crablet/oauth";
import { recordingFetchOf } from "../inspector/recording";
import { elicitation } from "./elicitation";
import { isWebAddress } from "./providers";
import { tokenStore } from "./token-store";

export interface HttpServerSettings {
  readonly type: "http";
  readonly name: string;
  readonly url: string;
}

export interface ShimServerSettings {
  readonly type: "shim";
  readonly name: string;
  /** The shim's address; empty for its default one. */
  readonly url: string;
  readonly token: string;
}

export type ServerSettings = HttpServerSettings | ShimServerSettings;

/** Where a shim listens unless it is told otherwise. */
export const DEFAULT_SHIM_URL = "ws://127.0.0.1:6735";

/** The server that these settings name. */
export function serverOf(settings: ServerSettings): McpServer {
  if (settings.type === "http") {
    const url = settings.url.trim();
    const auth = { consent: popup(), store: tokenStore, clientName: "crablet playground" };
    return mcp.http(url, { elicitation, auth, fetch: recordingFetchOf(url) });
  }
  return mcp.shim({
    server: settings.name,
    token: settings.token.trim(),
    url: settings.url.trim() || DEFAULT_SHIM_URL,
    elicitation,
  });
}

/** What keeps these settings from being used, in words; `undefined` when nothing does. */
export function problemOf(settings: ServerSettings, taken: readonly string[]): string | undefined {
  if (settings.name.trim() === "") return "Give the server a name.";
  if (taken.includes(settings.name.trim())) return "Another server already has this name.";
  if (settings.type === "http") return isWebAddress(settings.url) ? undefined : "This is not an http or https address.";
  if (settings.token.trim() === "") return "The shim needs a token: run crablet-shim grant in a terminal.";
  return settings.url.trim() === "" || /^wss?:$/.test(URL.parse(settings.url.trim())?.protocol ?? "")
    ? undefined
    : "The shim's address begins with ws://.";
}

export function isServerSettings(value: unknown): value is ServerSettings {
  if (typeof value !== "object" || value === null || !("type" in value) || !("name" in value) || !("url" in value))
    return false;
  const isText = typeof value.name === "string" && typeof value.url === "string";
  return (
    isText && (value.type === "http" || (value.type === "shim" && "token" in value && typeof value.token === "string"))
  );
}
