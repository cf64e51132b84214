import type { CoreExecution } from "./core.js";
import { CrabletError, invalidInput } from "./error.js";
import { toJson } from "./json.js";
import type { McpContent } from "./mcp-protocol.js";
import { ownTurn } from "./own-turn.js";
import type { JsonSchema } from "./schema.js";
import type { MaybePromise } from "./tool.js";

/**
 * What a server may ask of the user or the program. What has no handler is not offered to the server. A handler that throws
 * refuses the request with the message of what it threw.
 */
export interface McpHandlers {
  /** The folders that the server may work in: a list, or a function that gives it. Their addresses begin with `file://`. */
  readonly roots?: readonly McpRoot[] | ((context: McpQuestionContext) => MaybePromise<readonly McpRoot[]>);
  /** Answers the server with a model. `sampleWith(model, …)` makes one that is bound to a model of crablet. */
  readonly sampling?: (request: McpSamplingRequest, context: McpQuestionContext) => MaybePromise<McpSamplingResult>;
  /** Asks the user. The user decides: show which server asks, and let them decline. */
  readonly elicitation?: McpElicitation;
}

/** How the user is asked, by a form and by a page; what is absent is not offered. */
export interface McpElicitation {
  /** Shows a form for the schema. Values that the answer lacks are filled in with the schema's defaults. */
  readonly form?: (request: McpFormRequest, context: McpQuestionContext) => MaybePromise<McpElicitationResult>;
  /**
   * Asks whether a page may be opened, and opens it. Show the whole address, never load it beforehand, and open it outside of
   * your control. `accept` means that the user agreed, not that they are done there.
   */
  readonly url?: (request: McpUrlRequest, context: McpQuestionContext) => MaybePromise<McpElicitationResult>;
}

/** What a handler knows of a question. */
export interface McpQuestionContext {
  /** The name that the server was given. */
  readonly server: string;
  /** Aborts when nobody wants the answer any more. */
  readonly signal: AbortSignal;
}

/** A folder. */
export interface McpRoot {
  readonly uri: string;
  readonly name?: string;
}

/** A form to show. */
export interface McpFormRequest {
  readonly message: string;
  /** An object of texts, numbers, booleans and choices; not nested. */
  readonly requestedSchema: JsonSchema;
}

/** A page to open. */
export interface McpUrlRequest {
  readonly message: string;
  readonly url: string;
  readonly elicitationId?: string;
}

/** What the user decided. */
export type McpElicitationResult =
  | {
      readonly action: "accept";
      readonly content?: Readonly<Record<string, string | number | boolean | readonly string[]>>;
    }
  | { readonly action: "decline" | "cancel" };

/** What a server wants a model to answer. */
export interface McpSamplingRequest {
  readonly messages: readonly {
    readonly role: "user" | "assistant";
    readonly content: McpContent | readonly McpContent[];
  }[];
  readonly systemPrompt?: string;
  readonly maxTokens: number;
  readonly temperature?: number;
  readonly stopSequences?: readonly string[];
  readonly modelPreferences?: Readonly<Record<string, unknown>>;
  readonly [member: string]: unknown;
}

/** A model's answer. */
export interface McpSamplingResult {
  readonly role: "assistant";
  readonly content: McpContent;
  readonly model: string;
  readonly stopReason?: "endTurn" | "stopSequence" | "maxTokens" | (string & {});
}

/** @internal What the handlers stand for, as a client declares it. */
export function capabilitiesOf({ roots, sampling, elicitation }: McpHandlers): Record<string, unknown> {
  return {
    ...(roots && { roots: { listChanged: true } }),
    ...(sampling && { sampling: {} }),
    ...((elicitation?.form || elicitation?.url) && {
      elicitation: { ...(elicitation.form && { form: {} }), ...(elicitation.url && { url: {} }) },
    }),
  };
}

/** @internal Puts a question of a server to its handler. */
export function answerOf(server: string, handlers: McpHandlers, method: string, params: string): CoreExecution {
  const controller = new AbortController();
  const context: McpQuestionContext = { server, signal: controller.signal };
  const answer = async (): Promise<string> => {
    await ownTurn();
    return toJson(await answered(handlers, method, JSON.parse(params), context), `the answer to ${method}`);
  };
  return { result: answer(), cancel: () => controller.abort() };
}

async function answered(
  { roots, sampling, elicitation }: McpHandlers,
  method: string,
  params: Record<string, unknown>,
  context: McpQuestionContext,
): Promise<unknown> {
  switch (method) {
    case "roots/list":
      return { roots: typeof roots === "function" ? await roots(context) : (roots ?? []) };
    case "sampling/createMessage":
      if (sampling !== undefined) return sampling(params as unknown as McpSamplingRequest, context);
      break;
    case "elicitation/create":
      if (params.mode === "url") {
        if (elicitation?.url !== undefined) return elicitation.url(urlRequest(params), context);
      } else if (elicitation?.form !== undefined) {
        return elicitation.form(params as unknown as McpFormRequest, context);
      }
      break;
  }
  throw new CrabletError({ kind: "invalid-input", message: `this client does not offer ${method}` });
}

/** A page of a scheme that only a browser opens: anything else may start a program. */
function urlRequest(params: Record<string, unknown>): McpUrlRequest {
  const url = URL.parse?.(String(params.url)) ?? new URL(String(params.url));
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw invalidInput(`the server asks to open an address that is no page: ${url.protocol}`);
  }
  return params as unknown as McpUrlRequest;
}
