// The providers a user can choose, and what each needs.
import { anthropic, openai, openaiCompatible, type Model } from "crablet";

export type ProviderId = "anthropic" | "openai" | "compatible";

export interface ModelSettings {
  readonly provider: ProviderId;
  readonly model: string;
  readonly apiKey: string;
  /** Empty for the provider's own address. */
  readonly baseUrl: string;
}

export interface Provider {
  readonly id: ProviderId;
  readonly label: string;
  readonly needsKey: boolean;
  readonly needsBaseUrl: boolean;
  readonly keyHint: string;
  readonly baseUrlHint: string;
  readonly models: readonly string[];
  readonly note: string;
}

export const PROVIDERS: readonly Provider[] = [
  {
    id: "anthropic",
    label: "Anthropic",
    needsKey: true,
    needsBaseUrl: false,
    keyHint: "sk-ant-…",
    baseUrlHint: "https://api.anthropic.com",
    models: ["claude-sonnet-5", "claude-opus-4-5", "claude-haiku-4-5"],
    note: "The browser talks to Anthropic directly. Use a key of your own, with a spending limit.",
  },
  {
    id: "openai",
    label: "OpenAI",
    needsKey: true,
    needsBaseUrl: false,
    keyHint: "sk-…",
    baseUrlHint: "https://api.openai.com/v1",
    models: ["gpt-5", "gpt-5-mini"],
    note: "The browser talks to OpenAI directly. Use a key of your own, with a spending limit.",
  },
  {
    id: "compatible",
    label: "Compatible or local",
    needsKey: false,
    needsBaseUrl: true,
    keyHint: "only if the server wants one",
    baseUrlHint: "http://127.0.0.1:11434/v1",
    models: [],
    note: "Any server that speaks the OpenAI Chat wire: Ollama, llama.cpp, LM Studio, vLLM, OpenRouter, Groq. It must allow this page (CORS).",
  },
];

/** The provider of this id. */
export function providerOf(id: ProviderId): Provider {
  const provider = PROVIDERS.find((candidate) => candidate.id === id);
  if (!provider) throw new Error(`no provider is called ${id}`);
  return provider;
}

/** What keeps these settings from being used, field by field; empty when nothing does. */
export function problemsOf(settings: ModelSettings): Partial<Record<"model" | "apiKey" | "baseUrl", string>> {
  const provider = providerOf(settings.provider);
  return {
    ...(settings.model.trim() === "" && { model: "Name a model." }),
    ...(provider.needsKey && settings.apiKey.trim() === "" && { apiKey: `${provider.label} needs a key.` }),
    ...(provider.needsBaseUrl &&
      settings.baseUrl.trim() === "" && { baseUrl: "Give the server's address, ending in /v1 as a rule." }),
    ...(settings.baseUrl.trim() !== "" &&
      !isWebAddress(settings.baseUrl) && { baseUrl: "This is not an http or https address." }),
  };
}

/** The model that these settings name. */
export function modelOf(settings: ModelSettings): Model {
  const id = settings.model.trim();
  const apiKey = settings.apiKey.trim();
  const baseUrl = settings.baseUrl.trim().replace(/\/+$/, "");
  const options = { ...(apiKey !== "" && { apiKey }), ...(baseUrl !== "" && { baseUrl }) };
  switch (settings.provider) {
    case "anthropic":
      // The key is the user's own, typed into a page that keeps it to itself.
      return anthropic(id, { ...options, dangerouslyAllowBrowser: true });
    case "openai":
      return openai(id, options);
    case "compatible":
      return openaiCompatible(id, { ...options, baseUrl });
  }
}

export function isWebAddress(text: string): boolean {
  return /^https?:$/.test(URL.parse(text.trim())?.protocol ?? "");
}
