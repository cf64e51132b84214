// Settings and secrets. Only the worker reads secrets: the panel sets them, and is told whether there are any.

/** Which model answers, and whether tools of local servers ask first. */
export interface Settings {
  readonly provider: "anthropic" | "openai" | "compatible";
  readonly model: string;
  /** The address of the server, for `compatible`. */
  readonly baseUrl: string;
  readonly asksBeforeTools: boolean;
  /** The MCP servers of a shim that `crablet-shim install` has made known to the browser: no port and no code. */
  readonly nativeServers: readonly string[];
}

/** What the panel may know. */
export interface SettingsView extends Settings {
  readonly hasKey: boolean;
  /** The MCP servers that the pairing opened. */
  readonly servers: readonly string[];
}

/** What pairing with crablet-shim gave. */
export interface Pairing {
  readonly token: string;
  readonly url: string;
  readonly servers: readonly string[];
}

const DEFAULTS: Settings = {
  provider: "anthropic",
  model: "claude-sonnet-5",
  baseUrl: "",
  asksBeforeTools: true,
  nativeServers: [],
};

/** A key is only ever sent to the origin that it was entered for. */
interface Key {
  readonly key: string;
  readonly origin: string;
}

/** Where the settings send the conversation. */
export function originOf({ provider, baseUrl }: Settings): string {
  if (provider === "anthropic") return "https://api.anthropic.com";
  if (provider === "openai") return "https://api.openai.com";
  return new URL(baseUrl).origin;
}

/** Content scripts run in the processes of web pages, so none of this extension's storage is for them. */
export async function closeStorage(): Promise<void> {
  await chrome.storage.local.setAccessLevel({ accessLevel: "TRUSTED_CONTEXTS" });
}

export async function readSettings(): Promise<Settings> {
  const { settings } = await chrome.storage.local.get("settings");
  return { ...DEFAULTS, ...(settings as Settings | undefined) };
}

export async function readView(): Promise<SettingsView> {
  const settings = await readSettings();
  const [key, pairing] = [await readKey(settings), await readPairing()];
  return { ...settings, hasKey: key !== undefined, servers: pairing?.servers ?? [] };
}

/** @throws when an address is none, or would send the conversation in the clear over the network. */
export async function saveSettings(settings: Settings): Promise<void> {
  if (settings.model === "") throw new Error("Name a model.");
  if (settings.provider === "compatible") checkAddress(settings.baseUrl);
  await chrome.storage.local.set({ settings });
}

function checkAddress(address: string): void {
  if (!URL.canParse(address)) throw new Error("The address of the model's server is not an address.");
  const { protocol, hostname } = new URL(address);
  const isHere = hostname === "localhost" || hostname === "127.0.0.1";
  if (protocol !== "https:" && !(protocol === "http:" && isHere))
    throw new Error("The address must begin with https://, or with http:// and lead to this machine.");
}

/** Without `remember`, the key is in memory only and gone when the browser is closed. An empty key is forgotten. */
export async function saveKey(key: string, settings: Settings, remember: boolean): Promise<void> {
  await Promise.all([chrome.storage.session.remove("key"), chrome.storage.local.remove("key")]);
  if (key === "") return;
  const area = remember ? chrome.storage.local : chrome.storage.session;
  await area.set({ key: { key, origin: originOf(settings) } satisfies Key });
}

/** The key for where these settings lead. */
export async function readKey(settings: Settings): Promise<string | undefined> {
  for (const area of [chrome.storage.session, chrome.storage.local]) {
    const found = (await area.get("key")).key as Key | undefined;
    if (found?.origin === originOf(settings)) return found.key;
  }
  return undefined;
}

export async function readPairing(): Promise<Pairing | undefined> {
  return (await chrome.storage.local.get("pairing")).pairing as Pairing | undefined;
}

/** The token is of use to this extension's origin only, so it may outlive the browser. */
export async function savePairing(pairing: Pairing | undefined): Promise<void> {
  if (pairing === undefined) await chrome.storage.local.remove("pairing");
  else await chrome.storage.local.set({ pairing });
}
