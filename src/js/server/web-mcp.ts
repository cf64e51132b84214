// Tools in the shape of WebMCP (`document.modelContext`), a draft of the W3C's Web Machine Learning group.
import { type MaybePromise, toolOutput } from "../tool.js";
import { type ServerTool, serverTool, type ToolHints } from "./catalog.js";
import { fields } from "./protocol.js";

/** A tool as a page registers it at `document.modelContext`. */
export interface WebMcpTool {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  /** A JSON Schema of an object. Default: any. */
  readonly inputSchema?: object;
  readonly annotations?: ToolHints;
  /** Runs the tool. What it gives is told as JSON; a result of MCP (`{ content: [{ type: "text", text }] }`) as its content. */
  readonly execute: (input: any, options: { readonly signal: AbortSignal }) => MaybePromise<unknown>;
}

/** A list of tools that changes by itself. */
export interface ToolSource {
  /** The tools of the moment. */
  tools(): MaybePromise<readonly WebMcpTool[]>;
  /** Calls the listener whenever they change, until the function that it gives is called. */
  subscribe(listener: () => void): () => void;
}

/** What of `document.modelContext` is used. */
export interface ModelContext {
  /** The tools that are registered now. */
  getTools(): Promise<readonly RegisteredTool[]>;
  /** Runs one of them, and gives what it returned as text. */
  executeTool(tool: RegisteredTool, input: object, options: { readonly signal: AbortSignal }): Promise<string>;
  /** Calls the listener whenever tools are registered or taken away. */
  addEventListener(type: "toolchange", listener: () => void): void;
  /** Takes a listener away. */
  removeEventListener(type: "toolchange", listener: () => void): void;
}

/** A tool that is registered there. */
export interface RegisteredTool extends Omit<WebMcpTool, "execute"> {
  readonly origin?: string;
}

/**
 * The tools that the page has registered at `document.modelContext`, as they come and go; those of frames of other origins are
 * left out. None where the browser has no WebMCP. Default: that of the page.
 */
export function documentTools(context: ModelContext | undefined = ownContext()): ToolSource {
  return {
    async tools() {
      const registered = (await context?.getTools()) ?? [];
      return registered
        .filter(({ origin }) => origin === undefined || origin === globalThis.origin)
        .map((tool) => ({
          name: tool.name,
          description: tool.description,
          ...(tool.title && { title: tool.title }),
          ...(tool.inputSchema !== undefined && { inputSchema: tool.inputSchema }),
          ...(tool.annotations?.readOnlyHint === true && { annotations: { readOnlyHint: true } }),
          execute: async (input: object, { signal }: { readonly signal: AbortSignal }) =>
            parsed((await context?.executeTool(tool, input, { signal })) ?? ""),
        }));
    },
    subscribe(listener) {
      context?.addEventListener("toolchange", listener);
      return () => context?.removeEventListener("toolchange", listener);
    },
  };
}

/** A tool of this shape as one to serve. */
export function fromWebMcp({ name: _name, inputSchema, execute, ...rest }: WebMcpTool): ServerTool {
  const tool = serverTool({
    description: rest.description,
    input: (inputSchema ?? { type: "object" }) as Record<string, unknown>,
    execute: async (input, { signal }) => resultOf(await execute(input, { signal })),
  });
  return {
    ...tool,
    ...(rest.title !== undefined && { title: rest.title }),
    ...(rest.annotations !== undefined && { annotations: rest.annotations }),
  };
}

/** A result of MCP as that of a tool; anything else stays. */
function resultOf(returned: unknown): unknown {
  const { content, isError } = fields(returned) ?? {};
  if (!Array.isArray(content) || !content.every((block) => typeof fields(block)?.type === "string")) return returned;
  return toolOutput({
    content: content.map((block) =>
      block.type === "text"
        ? { type: "text", text: String(block.text) }
        : typeof block.data === "string"
          ? { type: "file", mediaType: String(block.mimeType), data: block.data }
          : { type: "text", text: JSON.stringify(block) },
    ),
    isError: isError === true,
  });
}

/** The browser gives a result as JSON text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function ownContext(): ModelContext | undefined {
  return (globalThis.document as { readonly modelContext?: ModelContext } | undefined)?.modelContext;
}
