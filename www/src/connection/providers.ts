// The providers a user can choose, and what each needs.
import { anthropic, azure, bedrock, gemini, openai, openaiCompatible, vertex, type Model } from "crablet";
import { catalog } from "crablet/models";
import { recordingFetch } from "../inspector/recording";

export type ProviderId =
  | "anthropic"
  | "openai"
  | "openai-responses"
  | "gemini"
  | "azure"
  | "vertex"
  | "bedrock"
  | "compatible";

export interface ModelSettings {
  readonly provider: ProviderId;
  readonly model: string;
  readonly apiKey: string;
  /** Empty for the provider's own address. */
  readonly baseUrl: string;
  /** What only this provider needs, by the names of its fields. */
  readonly more: Readonly<Record<string, string>>;
}

/** A field that one provider needs and the others do not. */
export interface ProviderField {
  readonly name: string;
  readonly label: string;
  readonly hint: string;
  readonly isOptional: boolean;
}

export interface Provider {
  readonly id: ProviderId;
  readonly label: string;
  readonly needsKey: boolean;
  readonly needsBaseUrl: boolean;
  readonly keyLabel: string;
  readonly keyHint: string;
  readonly baseUrlHint: string;
  readonly fields: readonly ProviderField[];
  readonly note: string;
}

const OWN_KEY = "Use a key of your own, with a spending limit.";

const PROXY = "It does not let pages in (CORS): name a server of yours as the base URL that passes requests on.";

export const PROVIDERS: readonly Provider[] = [
  {
    id: "anthropic",
    label: "Anthropic",
    needsKey: true,
    needsBaseUrl: false,
    keyLabel: "API key",
    keyHint: "sk-ant-…",
    baseUrlHint: "https://api.anthropic.com",
    fields: [],
    note: `The browser talks to Anthropic directly. ${OWN_KEY}`,
  },
  {
    id: "openai",
    label: "OpenAI (Chat Completions)",
    needsKey: true,
    needsBaseUrl: false,
    keyLabel: "API key",
    keyHint: "sk-…",
    baseUrlHint: "https://api.openai.com/v1",
    fields: [],
    note: `The browser talks to OpenAI directly. ${OWN_KEY}`,
  },
  {
    id: "openai-responses",
    label: "OpenAI (Responses)",
    needsKey: true,
    needsBaseUrl: false,
    keyLabel: "API key",
    keyHint: "sk-…",
    baseUrlHint: "https://api.openai.com/v1",
    fields: [],
    note: `The browser talks to OpenAI directly. ${OWN_KEY}`,
  },
  {
    id: "gemini",
    label: "Google Gemini",
    needsKey: true,
    needsBaseUrl: false,
    keyLabel: "API key",
    keyHint: "AIza…",
    baseUrlHint: "https://generativelanguage.googleapis.com/v1beta",
    fields: [],
    note: `The browser talks to Google directly. ${OWN_KEY}`,
  },
  {
    id: "azure",
    label: "Azure OpenAI",
    needsKey: true,
    needsBaseUrl: false,
    keyLabel: "API key",
    keyHint: "of the resource",
    baseUrlHint: "https://NAME.openai.azure.com/openai/v1",
    fields: [{ name: "resource", label: "Resource", hint: "its name", isOptional: true }],
    note: `The model is the name of your deployment; the resource or a base URL says where it is. ${PROXY}`,
  },
  {
    id: "vertex",
    label: "Google Vertex AI",
    needsKey: true,
    needsBaseUrl: false,
    keyLabel: "Access token",
    keyHint: "gcloud auth print-access-token",
    baseUrlHint: "https://aiplatform.googleapis.com/v1",
    fields: [
      { name: "project", label: "Project", hint: "its id", isOptional: false },
      { name: "location", label: "Location", hint: "global", isOptional: true },
    ],
    note: `A token lasts an hour. ${PROXY}`,
  },
  {
    id: "bedrock",
    label: "Amazon Bedrock",
    needsKey: true,
    needsBaseUrl: false,
    keyLabel: "Bedrock API key",
    keyHint: "of the region",
    baseUrlHint: "https://bedrock-runtime.us-east-1.amazonaws.com",
    fields: [{ name: "region", label: "Region", hint: "us-east-1", isOptional: false }],
    note: `The key is a Bedrock API key: a page is no place for keys of an AWS account. ${PROXY}`,
  },
  {
    id: "compatible",
    label: "Compatible or local",
    needsKey: false,
    needsBaseUrl: true,
    keyLabel: "API key",
    keyHint: "only if the server wants one",
    baseUrlHint: "http://127.0.0.1:11434/v1",
    fields: [],
    note: "Any server that speaks the OpenAI Chat wire: Ollama, llama.cpp, LM Studio, vLLM, OpenRouter, Groq. It must allow this page (CORS).",
  },
];

/** The provider of this id. */
export function providerOf(id: ProviderId): Provider {
  const provider = PROVIDERS.find((candidate) => candidate.id === id);
  if (!provider) throw new Error(`no provider is called ${id}`);
  return provider;
}

/** The model that each provider is first asked for: one that is good at tools and not the dearest. */
const FIRST_MODELS: Readonly<Partial<Record<ProviderId, string>>> = {
  anthropic: "claude-sonnet-5",
  openai: "gpt-5.4",
  "openai-responses": "gpt-5.4",
  gemini: "gemini-3.8-flash",
  vertex: "gemini-3.8-flash",
};

/** The settings of a provider before the user has said anything. */
export function defaultsOf(id: ProviderId): ModelSettings {
  return { provider: id, model: FIRST_MODELS[id] ?? "", apiKey: "", baseUrl: "", more: {} };
}

/** The models of a provider that the catalogue knows, to choose from. */
export function knownModels(id: ProviderId): readonly string[] {
  const provider = id === "openai-responses" ? "openai" : id;
  return catalog.models.filter((model) => model.provider === provider).map((model) => model.id);
}

/** What keeps these settings from being used, by the name of the field; empty when nothing does. */
export function problemsOf(settings: ModelSettings): Readonly<Record<string, string>> {
  const provider = providerOf(settings.provider);
  const { more } = settings;
  const missing = provider.fields.filter(({ name, isOptional }) => !isOptional && !more[name]?.trim());
  return {
    ...(settings.model.trim() === "" && { model: "Name a model." }),
    ...Object.fromEntries(missing.map(({ name, label }) => [name, `${provider.label} needs this: ${label}.`])),
    ...(provider.id === "azure" &&
      !more["resource"]?.trim() &&
      settings.baseUrl.trim() === "" && { resource: "Name the resource, or give a base URL." }),
    ...(provider.needsKey &&
      settings.apiKey.trim() === "" && { apiKey: `${provider.label} needs this: ${provider.keyLabel}.` }),
    ...(provider.needsBaseUrl &&
      settings.baseUrl.trim() === "" && { baseUrl: "Give the server's address, ending in /v1 as a rule." }),
    ...(settings.baseUrl.trim() !== "" &&
      !isWebAddress(settings.baseUrl) && { baseUrl: "This is not an http or https address." }),
  };
}

/** The model that these settings name, with its prices where the catalogue has them. */
export function modelOf(settings: ModelSettings): Model {
  return catalog.describe(bareModelOf(settings));
}

function bareModelOf(settings: ModelSettings): Model {
  const id = settings.model.trim();
  const apiKey = settings.apiKey.trim();
  const baseUrl = settings.baseUrl.trim().replace(/\/+$/, "");
  const place = { fetch: recordingFetch, ...(baseUrl !== "" && { baseUrl }) };
  const options = { ...place, ...(apiKey !== "" && { apiKey }) };
  const more = (name: string): string => settings.more[name]?.trim() ?? "";
  switch (settings.provider) {
    case "anthropic":
      // The key is the user's own, typed into a page that keeps it to itself.
      return anthropic(id, { ...options, dangerouslyAllowBrowser: true });
    case "openai":
      return openai(id, options);
    case "openai-responses":
      return openai(id, { ...options, api: "responses" });
    case "gemini":
      return gemini(id, options);
    case "azure":
      return azure(id, { ...options, ...(baseUrl === "" && { resource: more("resource") }) });
    case "vertex": {
      const location = more("location");
      return vertex(id, { ...place, project: more("project"), accessToken: apiKey, ...(location && { location }) });
    }
    case "bedrock":
      return bedrock(id, { ...options, region: more("region") });
    case "compatible":
      return openaiCompatible(id, { ...options, baseUrl });
  }
}

export function isWebAddress(text: string): boolean {
  return /^https?:$/.test(URL.parse(text.trim())?.protocol ?? "");
}
