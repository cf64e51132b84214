import { invalidInput } from "../error.js";
import type { Infer, JsonSchema, Schema } from "../schema.js";
import { type MaybePromise, type Tool, type ToolContext, type ToolDefinition, tool } from "../tool.js";
import type { InputRequest } from "./input-request.js";
import type { LogLevel } from "./protocol.js";
import { type UriMatcher, uriTemplate } from "./uri-template.js";

/** What a function of a server knows of its call, beside what every tool knows. */
export interface ServerContext extends ToolContext {
  /** What the client answered to the input this call asked for before, by key. Empty the first time. */
  readonly inputResponses: Readonly<Record<string, unknown>>;
  /** What the call gave to keep when it asked. It comes from the client, so check it if it matters. */
  readonly requestState: string | undefined;
  /** Who asks, as `authorize` of an HTTP handler found out; `undefined` elsewhere. */
  readonly caller: Caller | undefined;
  /** Whether the client can be asked for this. */
  canAsk(request: InputRequest): boolean;
  /**
   * Reports progress, if the client wants to hear of it: a number, or `{ progress, total, message }`. Numbers grow from report
   * to report.
   */
  progress(data: unknown): void;
  /** Sends a log message, if the client wants to hear of it and the server was made with `logging`. */
  log(level: LogLevel, data: unknown, logger?: string): void;
}

/** Who asks over HTTP. */
export interface Caller {
  /** Tells callers apart: the session of one is there for no other. */
  readonly id: string;
  /** Whatever else the tools are to know, such as scopes. */
  readonly [name: string]: unknown;
}

/** What a tool does to the world. Hints, which a client need not believe. */
export interface ToolHints {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** A tool of `tool()`, with what only servers tell. */
export type ServerTool = Tool & {
  readonly title?: string;
  readonly annotations?: ToolHints;
  /** The JSON Schema of its value, which is checked; the value is then told as structured content. */
  readonly outputSchema?: JsonSchema;
};

/** How a tool of a server is written: as for `tool()`, with what only servers tell and know. */
export interface ServerToolDefinition<S extends Schema = Schema, Output = unknown>
  extends Omit<ToolDefinition<S, Output>, "execute">,
    Pick<ServerTool, "title" | "annotations" | "outputSchema"> {
  /** Runs the tool, with an input that was checked. What it throws is told to the client as a failed result. */
  readonly execute: (input: Infer<S>, context: ServerContext) => MaybePromise<Output>;
}

/**
 * Makes a tool of a server, and infers the type of its input from the schema. Tools of `tool()` are served too.
 *
 * @throws CrabletError `invalid-input` when the schema cannot be told to a model.
 */
export function serverTool<const S extends Schema, Output>(definition: ServerToolDefinition<S, Output>): ServerTool {
  const { title, annotations, outputSchema, ...rest } = definition;
  return {
    ...tool(rest as ToolDefinition<S, Output>),
    ...(title !== undefined && { title }),
    ...(annotations !== undefined && { annotations }),
    ...(outputSchema !== undefined && { outputSchema }),
  };
}

/** What a resource holds: text, bytes, or several with their own addresses. */
export type ResourceContent =
  | string
  | Uint8Array
  | readonly { readonly uri: string; readonly mimeType?: string; readonly text?: string; readonly blob?: string }[];

/** A resource, under its address or a template of addresses. */
export interface ServerResource {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  /** Reads it; `undefined` when there is no such resource. `variables` are a template's. */
  readonly read: (
    uri: string,
    variables: Readonly<Record<string, string>>,
    context: ServerContext,
  ) => MaybePromise<ResourceContent | undefined>;
}

/** A message of a prompt. */
export interface PromptMessage {
  readonly role: "user" | "assistant";
  readonly content: Readonly<Record<string, unknown>>;
}

/** A prompt. */
export interface ServerPrompt {
  readonly title?: string;
  readonly description?: string;
  readonly arguments?: Readonly<Record<string, { readonly description?: string; readonly required?: boolean }>>;
  /** The text of one message of the user, or all messages. */
  readonly get: (
    given: Readonly<Record<string, string>>,
    context: ServerContext,
  ) => MaybePromise<string | readonly PromptMessage[]>;
}

/** What is served. */
export interface CatalogOptions {
  /** An empty object of tools when the server is made says that some may come. */
  readonly tools?: Readonly<Record<string, ServerTool>>;
  /** By address, or by template: `notes://{id}`. */
  readonly resources?: Readonly<Record<string, ServerResource>>;
  readonly prompts?: Readonly<Record<string, ServerPrompt>>;
}

/** What is served, checked. */
export class Catalog {
  readonly tools: ReadonlyMap<string, ServerTool>;
  readonly prompts: ReadonlyMap<string, ServerPrompt>;
  readonly resources: readonly { readonly uri: string; readonly resource: ServerResource }[];
  readonly templates: readonly {
    readonly uri: string;
    readonly resource: ServerResource;
    readonly match: UriMatcher;
  }[];

  /** @throws CrabletError `invalid-input` when a name or template cannot be served. */
  constructor({ tools = {}, resources = {}, prompts = {} }: CatalogOptions) {
    for (const name of Object.keys(tools)) {
      if (!/^[A-Za-z0-9_.-]{1,128}$/.test(name))
        throw invalidInput(
          `${JSON.stringify(name)} is no name of a tool: it takes 1 to 128 letters, digits, "_", "-" and "."`,
        );
    }
    this.tools = new Map(Object.entries(tools));
    this.prompts = new Map(Object.entries(prompts));
    const all = Object.entries(resources).map(([uri, resource]) => ({ uri, resource }));
    this.resources = all.filter(({ uri }) => !uri.includes("{"));
    this.templates = all
      .filter(({ uri }) => uri.includes("{"))
      .map(({ uri, resource }) => ({ uri, resource, match: uriTemplate(uri) }));
  }

  /** The resource of an address, with what a template says of it. */
  find(uri: string): { resource: ServerResource; variables: Record<string, string> } | undefined {
    const exact = this.resources.find((other) => other.uri === uri);
    if (exact !== undefined) return { resource: exact.resource, variables: {} };
    for (const { resource, match } of this.templates) {
      const variables = match(uri);
      if (variables !== undefined) return { resource, variables };
    }
    return undefined;
  }
}
