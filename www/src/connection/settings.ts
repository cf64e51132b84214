// The user's connection settings. They live in memory; only a user who asks for it has them kept, for this browser session.
import { computed, effect, signal } from "@preact/signals";
import { demo } from "./demo";
import { defaultsOf, PROVIDERS, type ModelSettings, type ProviderId } from "./providers";
import { isServerSettings, type ServerSettings } from "./server-settings";

const STORAGE_KEY = "crablet.connection";

interface Kept {
  readonly model: ModelSettings;
  readonly servers: readonly ServerSettings[];
}

const kept = readKept();

export const keepForSession = signal(kept !== undefined);
export const modelSettings = signal<ModelSettings>(kept?.model ?? defaultsOf("anthropic"));
export const serverSettings = signal<readonly ServerSettings[]>(kept?.servers ?? []);

/** Whether a person is asked before each tool call. */
export const asksBeforeTools = signal(false);

/** Whether the demo's scripted model answers. */
export const isScripted = computed(
  () => demo.value?.scripted === true && modelSettings.value.baseUrl === demo.value.model.baseUrl,
);

/** Changes some fields of the model's settings. */
export function changeModel(change: Partial<ModelSettings>): void {
  modelSettings.value = { ...modelSettings.value, ...change };
}

/** What was set for the other providers, so that a look at them loses nothing. */
const setAside = new Map<ProviderId, ModelSettings>();

/** Changes to another provider: to what was last set for it, or to its defaults. */
export function chooseProvider(provider: ProviderId): void {
  setAside.set(modelSettings.value.provider, modelSettings.value);
  modelSettings.value = setAside.get(provider) ?? defaultsOf(provider);
}

effect(() => {
  const value: Kept = { model: modelSettings.value, servers: serverSettings.value };
  try {
    if (keepForSession.value) sessionStorage.setItem(STORAGE_KEY, JSON.stringify(value));
    else sessionStorage.removeItem(STORAGE_KEY);
  } catch {
    // A browser that forbids storage keeps nothing, which is the default anyway.
  }
});

function readKept(): Kept | undefined {
  try {
    const value: unknown = JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? "null");
    if (!isKept(value)) return undefined;
    // What an earlier version of the page kept has fewer fields.
    return { ...value, model: { ...defaultsOf(value.model.provider), ...value.model } };
  } catch {
    return undefined;
  }
}

function isKept(value: unknown): value is Kept {
  if (typeof value !== "object" || value === null || !("model" in value) || !("servers" in value)) return false;
  const { model, servers } = value;
  return (
    typeof model === "object" &&
    model !== null &&
    "provider" in model &&
    PROVIDERS.some(({ id }) => id === model.provider) &&
    Array.isArray(servers) &&
    servers.every(isServerSettings)
  );
}
