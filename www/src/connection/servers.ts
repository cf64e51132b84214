// The MCP servers of the page: each with its state and what it offers.
import { signal } from "@preact/signals";
import type { ErrorInfo, McpServer } from "crablet";
import { infoOf } from "../ui/error-words";
import { listOffers, type Offers } from "./server-offers";
import { serverOf, type ServerSettings } from "./server-settings";
import { serverSettings } from "./settings";
import { forgetTokens } from "./token-store";

export type ServerState =
  | { readonly status: "connecting" }
  | { readonly status: "ready"; readonly offers: Offers }
  | { readonly status: "failed"; readonly error: ErrorInfo };

/** Counts the times that the user asked for fresh connections: an agent with older ones is not used any more. */
export const connectionsAsked = signal(0);

export const serverStates = signal<ReadonlyMap<string, ServerState>>(new Map());

/** Every configured server, by name, as the agent takes them. One that fails is not left out: the agent says so. */
export function configuredServers(): Readonly<Record<string, McpServer>> {
  return Object.fromEntries(serverSettings.value.map((settings) => [settings.name, serverOf(settings)]));
}

/** Adds a server and connects to it. */
export function addServer(settings: ServerSettings): void {
  serverSettings.value = [...serverSettings.value, settings];
  void connect(settings);
}

/** Forgets a server, and what it was signed in to with. */
export function removeServer(name: string): void {
  const removed = serverSettings.value.find((settings) => settings.name === name);
  if (removed?.type === "http") forgetTokens(removed.url.trim());
  serverSettings.value = serverSettings.value.filter((settings) => settings.name !== name);
  const states = new Map(serverStates.value);
  states.delete(name);
  serverStates.value = states;
}

/** Connects to every configured server afresh. */
export function reconnectAll(): void {
  serverStates.value = new Map();
  for (const settings of serverSettings.value) void connect(settings);
}

/** Connects to one server and reads what it offers. What goes wrong is the server's state, never a rejection. */
export async function connect(settings: ServerSettings): Promise<void> {
  connectionsAsked.value += 1;
  setState(settings.name, { status: "connecting" });
  await look(settings);
}

/** Looks whether a server of which a tool failed is still there: the tool's own words do not tell. */
export async function check(name: string): Promise<void> {
  const settings = serverSettings.value.find((settings) => settings.name === name);
  if (settings) await look(settings);
}

/** Looks whether every configured server is still there. */
export function checkAll(): void {
  for (const settings of serverSettings.value) void look(settings);
}

async function look(settings: ServerSettings): Promise<void> {
  try {
    setState(settings.name, { status: "ready", offers: await listOffers(serverOf(settings)) });
  } catch (error) {
    setState(settings.name, { status: "failed", error: infoOf(error) });
  }
}

function setState(name: string, state: ServerState): void {
  // A server that was removed while it connected has no state any more.
  if (!serverSettings.value.some((settings) => settings.name === name)) return;
  serverStates.value = new Map(serverStates.value).set(name, state);
}
