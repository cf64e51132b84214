// The configuration that `make demo` hands to the page: from the page's own origin, at a path that only the printed address holds.
import { signal } from "@preact/signals";
import { defaultsOf, type ModelSettings } from "./providers";
import { isServerSettings, type ServerSettings } from "./server-settings";

export interface Demo {
  readonly model: ModelSettings;
  readonly servers: readonly ServerSettings[];
  /** Whether the model is the scripted one. */
  readonly scripted: boolean;
  /** Prompts to offer. */
  readonly prompts: readonly string[];
}

export const demo = signal<Demo | undefined>(undefined);

/** Reads the demo's configuration when the address names one. Resolves to `undefined` when the page is not part of a demo. */
export async function loadDemo(): Promise<Demo | undefined> {
  const secret = /^#demo=([\w-]+)$/.exec(location.hash)?.[1];
  if (!secret) return undefined;
  const response = await fetch(`demo-${secret}.json`, { cache: "no-store" });
  if (!response.ok) return undefined;
  const value: unknown = await response.json();
  if (!isDemo(value)) return undefined;
  demo.value = { ...value, model: { ...defaultsOf(value.model.provider), ...value.model } };
  return demo.value;
}

function isDemo(value: unknown): value is Demo {
  return (
    typeof value === "object" &&
    value !== null &&
    "model" in value &&
    "servers" in value &&
    "prompts" in value &&
    Array.isArray(value.prompts) &&
    Array.isArray(value.servers) &&
    value.servers.every(isServerSettings)
  );
}
