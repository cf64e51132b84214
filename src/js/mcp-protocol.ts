import type { ErrorInfo } from "./error.js";
import type { JsonSchema } from "./schema.js";

/** Anything further that a server sent: members that this version does not name are kept as they came. */
interface Open {
  readonly [member: string]: unknown;
}

/** A tool of an MCP server, as the server described it. */
export interface McpTool extends Open {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema?: JsonSchema;
  /** What the server says of the tool's effects. Hints of a stranger: never a reason to skip a question to the user. */
  readonly annotations?: McpToolAnnotations;
  readonly icons?: readonly McpIcon[];
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** Hints about a tool; see revision 2025-06-18, "Tool annotations". */
export interface McpToolAnnotations extends Open {
  readonly title?: string;
  /** It changes nothing. Taken as no when absent. */
  readonly readOnlyHint?: boolean;
  /** It may destroy something. Taken as yes when absent. */
  readonly destructiveHint?: boolean;
  /** Calling it twice with the same input is the same as calling it once. Taken as no when absent. */
  readonly idempotentHint?: boolean;
  /** It reaches beyond what the server holds. Taken as yes when absent. */
  readonly openWorldHint?: boolean;
}

/** An icon. Load it without credentials, and only from `https:` or `data:`. */
export interface McpIcon extends Open {
  readonly src: string;
  readonly mimeType?: string;
  readonly sizes?: readonly string[];
}

/** What a call of an MCP tool gave. */
export interface McpResult extends Open {
  readonly content: readonly McpContent[];
  /** The value, where the tool returns one. It fits the tool's output schema if the tools were listed before. */
  readonly structuredContent?: unknown;
  /** Whether the tool failed; the content says how. */
  readonly isError: boolean;
}

/** A block of content. `type` may be one that this version does not know. */
export type McpContent =
  | (Open & { readonly type: "text"; readonly text: string })
  /** The bytes in base64. */
  | (Open & { readonly type: "image" | "audio"; readonly data: string; readonly mimeType: string })
  /** The address of a resource that can be read. */
  | (Open & McpResource & { readonly type: "resource_link" })
  | (Open & { readonly type: "resource"; readonly resource: McpResourceContents })
  | (Open & { readonly type: string & {} });

/** A resource that a server offers. */
export interface McpResource extends Open {
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  /** In bytes. */
  readonly size?: number;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** A family of resources, by the template of their addresses (RFC 6570). */
export interface McpResourceTemplate extends Open {
  readonly uriTemplate: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
}

/** The contents of a resource: text, or bytes in base64. */
export interface McpResourceContents extends Open {
  readonly uri: string;
  readonly mimeType?: string;
  readonly text?: string;
  readonly blob?: string;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** A prompt that a server offers. */
export interface McpPrompt extends Open {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly arguments?: readonly (Open & {
    readonly name: string;
    readonly description?: string;
    readonly required?: boolean;
  })[];
}

/** A prompt with its arguments filled in. */
export interface McpPromptResult extends Open {
  readonly description?: string;
  readonly messages: readonly (Open & { readonly role: "user" | "assistant"; readonly content: McpContent })[];
}

/** What is completed: an argument of a prompt, or a variable of a resource template. */
export type McpCompletionReference =
  | { readonly type: "ref/prompt"; readonly name: string }
  | { readonly type: "ref/resource"; readonly uri: string };

/** Suggestions for a value. */
export interface McpCompletion extends Open {
  /** At most 100. */
  readonly values: readonly string[];
  readonly total?: number;
  readonly hasMore?: boolean;
}

/** How far a call has come. */
export interface McpProgress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

/** The levels of what a server logs, from the least to the most severe (RFC 5424). */
export type McpLogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/** What a server says of itself. For display only: it may say anything. */
export interface McpServerInfo {
  readonly name?: string;
  readonly title?: string;
  readonly version?: string;
  /** What it offers, such as `tools` and `resources`; absent when it was not asked. */
  readonly capabilities?: Readonly<Record<string, unknown>>;
  /** How to use it, for the model. */
  readonly instructions?: string;
}

/**
 * What was found about a server: worth keeping, so that the next connection need not find out. A wrong record costs one
 * request.
 */
export interface McpEraRecord {
  readonly era: "stateless" | "handshake";
  readonly revision: string;
  /** When it was found, in milliseconds of Unix time. */
  readonly at: number;
}

/** What happens on a connection. Types may be added. */
export type McpEvent =
  /** The connection stands; again after each session that had to be replaced. `resume` is what `mcp.shim()` takes. */
  | {
      readonly type: "connected";
      readonly server: McpServerInfo;
      readonly record: McpEraRecord;
      readonly resume?: string;
    }
  /** List them again when they are needed. An agent does so by itself. */
  | { readonly type: "tools-changed" | "prompts-changed" | "resources-changed" }
  /** A resource that was subscribed to. */
  | { readonly type: "resource-updated"; readonly uri: string }
  | { readonly type: "log"; readonly level: McpLogLevel; readonly logger?: string; readonly data: unknown }
  /** Something that whoever runs this should know, though nothing failed. */
  | { readonly type: "warning"; readonly message: string }
  /** Any other notification of the server. */
  | { readonly type: "notification"; readonly method: string; readonly params?: unknown }
  /** The connection is over. The next call makes it anew. */
  | { readonly type: "closed"; readonly error: ErrorInfo };
