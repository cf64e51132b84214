import { checkOptions, invalidInput } from "./error.js";
import { readHeaders } from "./headers.js";
import type { FilePart, Message, StopReason, Usage } from "./message.js";
import type { JsonSchema } from "./schema.js";
import type { MaybePromise } from "./tool.js";

/** A model to call. Made by `anthropic()`, `openai()`, `openaiCompatible()` and the others. */
export interface Model {
  readonly provider: string;
  readonly id: string;
  /** @internal A function, so that a model that is printed, or written as JSON, shows no key. */
  readonly settings: () => ModelSettings;
}

/** @internal */
export interface ModelSettings {
  readonly wire:
    | "anthropic"
    | "openai-chat"
    | "openai-responses"
    | "azure-chat"
    | "azure-responses"
    | "gemini"
    | "vertex"
    | "bedrock";
  readonly options: Omit<ProviderOptions, "apiKey">;
  readonly credentials: string | (() => MaybePromise<CoreCredentials>) | undefined;
}

/** @internal What the module authorizes a request with: a key or token as text, headers as they are, or keys that sign. */
export type CoreCredentials =
  | string
  | { readonly headers: readonly [string, string][] }
  | { readonly aws: AwsCredentials };

/** What a million tokens of a model cost, in US dollars. `crablet/models` has those of many models. */
export interface Prices {
  readonly input: number;
  /** Tokens written, those of reasoning included. */
  readonly output: number;
  /** Tokens read from the provider's cache. Default: as `input`. */
  readonly cacheRead?: number;
  /** Tokens written to the provider's cache. Default: as `input`. */
  readonly cacheWrite?: number;
  /** Other prices for requests that read more than `above` tokens. */
  readonly long?: Omit<Prices, "long"> & { readonly above: number };
}

/** How a provider is reached. */
export interface ProviderOptions {
  /**
   * The key, or a function that supplies it, called for each request: for short-lived tokens. It is sent to `baseUrl` and
   * nowhere else, and is in no event, error or snapshot. An empty one is an error of kind `auth`. Whoever can read a page can
   * read a key in it: for pages of others than yourself, point `baseUrl` to a server of yours that adds the key.
   */
  readonly apiKey?: string | (() => MaybePromise<string>);
  /**
   * The address that paths such as `/chat/completions` are appended to. Default: the provider's own. In a page it may be one within
   * the page's origin, such as `/api/model`. One of another scheme than http and https, or with a query, a fragment or a password, is
   * an error of kind `invalid-input`.
   */
  readonly baseUrl?: string | URL;
  /** Further headers of every request. */
  readonly headers?: HeadersInit;
  /**
   * What to use in place of the platform's `fetch`. It is given the key too. All models of an agent have the same, those that hooks
   * choose among them; another is an error of kind `invalid-input`. A sub-agent may have its own.
   */
  readonly fetch?: typeof fetch;
  /** What the model costs: then usage has the cost, and `maxCost` of the agent works. */
  readonly prices?: Prices;
  /**
   * The files that the model reads; in place of others it reads a note that one was left out. `[]` is for a model that reads
   * only text. Default: all that the protocol carries.
   */
  readonly accepts?: readonly FilePart["type"][];
}

/** Options of `anthropic()`. */
export interface AnthropicOptions extends ProviderOptions {
  /**
   * Lets a page call the provider directly, with the key in the page: sends
   * `anthropic-dangerous-direct-browser-access: true`. Default: false.
   */
  readonly dangerouslyAllowBrowser?: boolean;
}

/** Options of `openai()`. */
export interface OpenAIOptions extends ProviderOptions {
  /** Which of OpenAI's protocols: Chat Completions (the default) or Responses. */
  readonly api?: "chat" | "responses";
}

/** Options of `azure()`: either `resource` or `baseUrl` says where. */
export interface AzureOptions extends ProviderOptions {
  /** The name of the resource: `https://NAME.openai.azure.com/openai/v1` is its address. */
  readonly resource?: string;
  /** Which of OpenAI's protocols: Responses (the default), or Chat Completions for models that have only that. */
  readonly api?: "responses" | "chat";
  /** A token of Microsoft Entra, or a function that supplies one, called for each request. In place of `apiKey`. */
  readonly accessToken?: string | (() => MaybePromise<string>);
}

/** Options of `vertex()`. */
export interface VertexOptions extends Omit<ProviderOptions, "apiKey"> {
  /** The id of the project of Google Cloud. */
  readonly project: string;
  /** Where the model runs, such as `europe-west4`. Default: `global`. */
  readonly location?: string;
  /**
   * An OAuth access token, or a function that supplies one, called for each request: such tokens last an hour. Sent as
   * `authorization`. Without it, no token is sent, for a proxy that adds one.
   */
  readonly accessToken?: string | (() => MaybePromise<string>);
  /** What comes before `/projects/…`. Default: the location's own address, with `/v1`. */
  readonly baseUrl?: string | URL;
}

/** Keys of an AWS account. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** The token of temporary keys. */
  readonly sessionToken?: string;
}

/** Options of `bedrock()`: either `credentials` or `apiKey`. */
export interface BedrockOptions extends ProviderOptions {
  /** The region to call and to sign for, such as `us-east-1`. */
  readonly region: string;
  /**
   * Keys that sign each attempt (Signature Version 4), or a function that supplies them, called for each request. The secret
   * is never sent. With `apiKey`, which is a Bedrock API key, nothing is signed.
   */
  readonly credentials?: AwsCredentials | (() => MaybePromise<AwsCredentials>);
}

/** Options of a server that speaks the OpenAI Chat Completions protocol. */
export interface CompatibleOptions extends ProviderOptions {
  readonly baseUrl: string | URL;
  /** Whose peculiarities to expect, such as `groq`. Default: found by `baseUrl`. */
  readonly provider?: string;
}

/** A Claude model over the Anthropic Messages protocol. */
export function anthropic(id: string, options: AnthropicOptions = {}): Model {
  const { dangerouslyAllowBrowser, ...rest } = options;
  if (dangerouslyAllowBrowser !== true) return model("anthropic", "anthropic", id, rest);
  const headers = readHeaders(rest.headers);
  headers.set("anthropic-dangerous-direct-browser-access", "true");
  return model("anthropic", "anthropic", id, { ...rest, headers });
}

/** An OpenAI model over the Chat Completions or the Responses protocol. */
export function openai(id: string, options: OpenAIOptions = {}): Model {
  const { api = "chat", ...rest } = options;
  return model(api === "responses" ? "openai-responses" : "openai-chat", "openai", id, rest);
}

/** A Gemini model over the Gemini API. */
export function gemini(id: string, options: ProviderOptions = {}): Model {
  return model("gemini", "gemini", id, options);
}

/**
 * A deployment of Azure OpenAI, by the deployment's name.
 *
 * @throws CrabletError `invalid-input` without `resource` and `baseUrl`, or with both `apiKey` and `accessToken`.
 */
export function azure(deployment: string, options: AzureOptions): Model {
  const { resource, api = "responses", accessToken, ...rest } = options ?? {};
  const wire = api === "chat" ? "azure-chat" : "azure-responses";
  if (accessToken !== undefined && rest.apiKey !== undefined)
    throw invalidInput("azure() takes an apiKey or an accessToken, not both");
  const baseUrl = rest.baseUrl ?? `https://${named("azure", "resource", resource)}.openai.azure.com/openai/v1`;
  if (accessToken === undefined) return model(wire, "azure", deployment, { ...rest, baseUrl });
  const credentials = async (): Promise<CoreCredentials> => {
    const token = typeof accessToken === "function" ? await accessToken() : accessToken;
    return { headers: [["authorization", `Bearer ${text("accessToken", token)}`]] };
  };
  return model(wire, "azure", deployment, { ...rest, baseUrl }, credentials);
}

/**
 * A Gemini model on Vertex, at a project of Google Cloud.
 *
 * @throws CrabletError `invalid-input` without `project`.
 */
export function vertex(id: string, options: VertexOptions): Model {
  const { project, location = "global", accessToken, baseUrl, ...rest } = options ?? {};
  const place = named("vertex", "location", location);
  const host = place === "global" ? "aiplatform.googleapis.com" : `${place}-aiplatform.googleapis.com`;
  const base = String(baseUrl ?? `https://${host}/v1`).replace(/\/+$/, "");
  const address = `${base}/projects/${named("vertex", "project", project)}/locations/${place}`;
  return model("vertex", "vertex", id, { ...rest, baseUrl: address }, accessToken);
}

/**
 * A model or inference profile on Amazon Bedrock, over ConverseStream.
 *
 * @throws CrabletError `invalid-input` without `region`, or with both `credentials` and `apiKey`.
 */
export function bedrock(id: string, options: BedrockOptions): Model {
  const { region: given, credentials, ...rest } = options ?? {};
  const region = named("bedrock", "region", given);
  const baseUrl = rest.baseUrl ?? `https://bedrock-runtime.${region}.amazonaws.com`;
  if (credentials === undefined) return model("bedrock", "bedrock", id, { ...rest, baseUrl });
  if (rest.apiKey !== undefined) throw invalidInput("bedrock() takes credentials or an apiKey, not both");
  const signing = async (): Promise<CoreCredentials> => {
    const keys = typeof credentials === "function" ? await credentials() : credentials;
    const aws = {
      accessKeyId: text("credentials", keys?.accessKeyId, "accessKeyId"),
      secretAccessKey: text("credentials", keys.secretAccessKey, "secretAccessKey"),
      ...(keys.sessionToken !== undefined && { sessionToken: text("credentials", keys.sessionToken, "sessionToken") }),
      region,
    };
    return { aws };
  };
  return model("bedrock", "bedrock", id, { ...rest, baseUrl }, signing);
}

/** A model of any server that speaks the OpenAI Chat Completions protocol: llama.cpp, Ollama, vLLM, LM Studio, a gateway. */
export function openaiCompatible(id: string, options: CompatibleOptions): Model {
  if (!options?.baseUrl)
    throw invalidInput('openaiCompatible() needs the address of the server: { baseUrl: "http://localhost:8080/v1" }');
  const { provider, ...rest } = options;
  return model("openai-chat", provider ?? "custom", id, rest);
}

/** A model of xAI. */
export const xai = /* @__PURE__ */ profile("xai");
/** A model on Groq. */
export const groq = /* @__PURE__ */ profile("groq");
/** A model on Cerebras. */
export const cerebras = /* @__PURE__ */ profile("cerebras");
/** A model on OpenRouter. */
export const openrouter = /* @__PURE__ */ profile("openrouter");
/** A model of Mistral. */
export const mistral = /* @__PURE__ */ profile("mistral");
/** A model of DeepSeek. */
export const deepseek = /* @__PURE__ */ profile("deepseek");
/** A model of MiniMax. */
export const minimax = /* @__PURE__ */ profile("minimax");
/** A model of Z.ai. */
export const zai = /* @__PURE__ */ profile("zai");
/** A Qwen model on Alibaba Cloud Model Studio. */
export const qwen = /* @__PURE__ */ profile("qwen");
/** A model on a local Ollama. */
export const ollama = /* @__PURE__ */ profile("ollama");
/** A model on a local llama.cpp server. */
export const llamacpp = /* @__PURE__ */ profile("llamacpp");
/** A model on a vLLM server, at port 8000 of this machine unless `baseUrl` says otherwise. */
export const vllm = /* @__PURE__ */ profile("vllm");
/** A model in a local LM Studio. */
export const lmstudio = /* @__PURE__ */ profile("lmstudio");

/**
 * Settings of every model request. What is absent is not sent. A value of the wrong type is an error of kind `invalid-input`,
 * and so is a setting that changes what the model may do or what the call costs where the provider cannot be told it; the
 * others are left out there, as each one says. `docs/providers.md` has the table.
 */
export interface ModelOptions {
  /** Sampling temperature, from 0 to 2; to 1 with Anthropic and Bedrock. */
  readonly temperature?: number;
  /** Nucleus sampling, from 0 to 1. */
  readonly topP?: number;
  /** The most tokens to write. Default: the provider's; with Anthropic, which has none, 32 000 or what the model takes. */
  readonly maxTokens?: number;
  /** Texts that end the answer. An error with the Responses protocol. */
  readonly stop?: readonly string[];
  /** Left out for Anthropic, Responses and Bedrock, which have none. */
  readonly seed?: number;
  /** Whether and what the model must call: `{ tool }` names one. `"none"` is an error with Bedrock. */
  readonly toolChoice?: "auto" | "none" | "required" | { readonly tool: string };
  /** Whether the model may make several calls in one answer. `false` is an error with Gemini, Vertex and Bedrock. */
  readonly parallelToolCalls?: boolean;
  /**
   * How much to reason: a word, or a number of tokens. A provider without the word gets the nearest that it has; one that
   * takes only words, or only numbers, gets the one for the other.
   */
  readonly reasoning?: "off" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | number;
  /**
   * The person the request is made for, as an id that tells nobody who it is, for the provider's watch against abuse. Left out
   * for Gemini, Vertex, Bedrock and Mistral.
   */
  readonly user?: string;
  /** Labels for the provider's own logs and bills: OpenAI, Azure, OpenRouter, Vertex and Bedrock; left out for others. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Which queue the request stands in, in the provider's own word, such as `"flex"` or `"priority"`. */
  readonly serviceTier?: string;
  /** Whether the provider may keep the answer, where it asks: OpenAI, Azure and Gemini. Default: false. */
  readonly store?: boolean;
  /**
   * How long the provider keeps the beginning of a request, which the next request begins with too: `"short"` is some minutes,
   * `"long"` an hour (Anthropic, Bedrock, OpenRouter) or a day (OpenAI, Azure). The others cache unasked, or not.
   */
  readonly cache?: "short" | "long";
  /** What requests with a common beginning have in common, to find the cache: OpenAI and Azure; left out for others. */
  readonly cacheKey?: string;
  /**
   * The name of content cached beforehand with Gemini or Vertex, such as `cachedContents/…`. The instructions and tools are
   * part of it there, so those of the agent are not sent. An error with other providers.
   */
  readonly cachedContent?: string;
  /**
   * Tools that the provider itself runs, each in its own form, such as `{ type: "web_search" }`. What they did is kept in the
   * history and sent back. One with the `name` of a tool of the agent replaces its declaration: the model is told the
   * provider's (`computer`, `bash`, …), and the agent's tool runs.
   */
  readonly providerTools?: readonly Readonly<Record<string, unknown>>[];
  /**
   * Members merged into the request's body, for what has no name here. They win over everything else; an object is merged into
   * the one that is there, member by member.
   */
  readonly extraBody?: Readonly<Record<string, unknown>>;
}

/** What a model that is a function is asked. */
export interface ModelRequest {
  readonly instructions?: string;
  readonly messages: readonly Message[];
  readonly tools: readonly { readonly name: string; readonly description: string; readonly inputSchema: JsonSchema }[];
  /** What the answer shall be: the JSON text of an object of this schema. */
  readonly output?: { readonly name: string; readonly description?: string; readonly jsonSchema: JsonSchema };
}

/** One piece of the answer of a model that is a function; a bare string is text. */
export type ModelChunk =
  | string
  | { readonly type: "text-delta" | "reasoning-delta"; readonly delta: string }
  /** A complete call. `inputText` is for arguments as text, as a model wrote them. */
  | {
      readonly type: "tool-call";
      readonly toolName: string;
      readonly callId?: string;
      readonly input?: unknown;
      readonly inputText?: string;
    }
  | ({ readonly type: "usage" } & Usage)
  /** Why the model stopped; without it, returning means `stop`, or `tool-use` when there were calls. */
  | { readonly type: "stop"; readonly reason: StopReason };

/**
 * A model given as a function: one in the browser, a proxy, a script for a test. It yields its answer piece by piece;
 * returning ends the answer. What it throws ends the run; a `CrabletError` of a retryable kind is tried again.
 */
export type ModelFunction = (
  request: ModelRequest,
  context: { readonly signal: AbortSignal },
) => AsyncIterable<ModelChunk> | Iterable<ModelChunk> | Promise<AsyncIterable<ModelChunk> | Iterable<ModelChunk>>;

function profile(provider: string): (id: string, options?: ProviderOptions) => Model {
  return (id, options = {}) => model("openai-chat", provider, id, options);
}

function model(
  wire: ModelSettings["wire"],
  provider: string,
  id: string,
  { apiKey, ...options }: ProviderOptions,
  credentials: ModelSettings["credentials"] = typeof apiKey === "function"
    ? async () => text("apiKey", await apiKey())
    : apiKey,
): Model {
  if (typeof id !== "string" || id === "")
    throw invalidInput(`${provider}() needs the name of a model as its first argument`);
  checkOptions(options, `${provider}()`, ["baseUrl", "headers", "fetch", "prices", "accepts"]);
  checkAddress(options.baseUrl);
  return { provider, id, settings: () => ({ wire, options, credentials }) };
}

/** Refuses an address that no request can go to. It is not shown, since it may hold a key. */
function checkAddress(baseUrl: string | URL | undefined): void {
  if (baseUrl === undefined) return;
  const page = globalThis.location?.href;
  const url = URL.canParse(String(baseUrl), page) ? new URL(baseUrl, page) : undefined;
  const problem =
    url === undefined || !/^https?:$/.test(url.protocol)
      ? "is no address of http or https"
      : url.username + url.password !== ""
        ? "has a user name or a password, with which no request can be made: use headers"
        : url.search + url.hash !== ""
          ? "has a query or a fragment, and paths are appended to it: give a key as apiKey or in headers"
          : undefined;
  if (problem !== undefined) throw invalidInput(`the baseUrl ${problem}`);
}

/** A name that becomes part of an address, where anything else would lead the credentials elsewhere. */
function named(provider: string, option: string, value: unknown): string {
  if (typeof value === "string" && /^[A-Za-z0-9][A-Za-z0-9.:_-]*$/.test(value)) return value;
  throw invalidInput(
    `${provider}() needs a ${option}, of letters, digits and hyphens` +
      (value === undefined ? "" : `, and got ${JSON.stringify(value)}`),
  );
}

/** What a supplier of credentials gave, which is never shown. */
function text(supplier: string, value: unknown, member?: string): string {
  if (typeof value === "string" && value !== "") return value;
  throw new TypeError(`${supplier}() gave ${value === "" ? "an empty" : "no"} ${member ?? "text"}`);
}
