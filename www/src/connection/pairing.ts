// Connecting to a shim by the code that its user reads in a terminal.
import { mcp } from "crablet";
import { DEFAULT_SHIM_URL, type ServerSettings, type ShimServerSettings } from "./server-settings";

/** The servers after a pairing, and what came of it. */
export interface Paired {
  /** All servers of the page, those that the pairing opens included. */
  readonly servers: readonly ServerSettings[];
  /** Those that the pairing opens. */
  readonly opened: readonly ShimServerSettings[];
  /** The names that the pairing opens but other servers have already. */
  readonly taken: readonly string[];
}

/**
 * Obtains a token from the shim for a code, and settings for each server that it opens.
 *
 * @throws CrabletError as `mcp.pairShim` does.
 */
export async function pair(code: string, url: string, signal: AbortSignal): Promise<readonly ShimServerSettings[]> {
  const address = url.trim();
  const { token, servers } = await mcp.pairShim({ code: code.trim(), url: address || DEFAULT_SHIM_URL, signal });
  return servers.map((name) => ({ type: "shim", name, url: address, token }));
}

/** Takes the servers of a pairing in. One that this shim already opened gets the new token; no other is replaced. */
export function withPaired(servers: readonly ServerSettings[], paired: readonly ShimServerSettings[]): Paired {
  const isTaken = ({ name, url }: ShimServerSettings) =>
    servers.some((server) => server.name === name && !(server.type === "shim" && isSameShim(server.url, url)));
  const opened = paired.filter((server) => !isTaken(server));
  const kept = servers.filter(({ name }) => !opened.some((server) => server.name === name));
  return { servers: [...kept, ...opened], opened, taken: paired.filter(isTaken).map(({ name }) => name) };
}

function isSameShim(one: string, other: string): boolean {
  return (one || DEFAULT_SHIM_URL) === (other || DEFAULT_SHIM_URL);
}
