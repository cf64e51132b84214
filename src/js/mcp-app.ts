import { fromBase64 } from "./base64.js";
import { CrabletError } from "./error.js";
import type { McpResourceContents, McpTool } from "./mcp-protocol.js";

// The extension of MCP Apps, and what a page that shows them declares.
/** @internal */
export const UI_EXTENSION = "io.modelcontextprotocol/ui";
const MEDIA_TYPE = "text/html;profile=mcp-app";

/** @internal */
export const UI_SETTINGS = { mimeTypes: [MEDIA_TYPE] };

/**
 * The user interface of a tool: a document of a stranger. Show it in a sandboxed frame of another origin, with a content
 * security policy made of `csp` and no permission that is not in `permissions`.
 */
export interface McpApp {
  /** The resource it came from, `ui://…`. */
  readonly uri: string;
  readonly html: string;
  /** Where it may connect to and load from. Absent or without an entry: nowhere. */
  readonly csp?: McpAppPolicy;
  /** What it asks to use, such as `camera`. Absent: nothing. */
  readonly permissions?: Readonly<Record<string, unknown>>;
  /** An origin of its own that it asks for. */
  readonly domain?: string;
  /** Whether it wants a border around it. */
  readonly prefersBorder?: boolean;
}

/** Origins, by what may be done with them. */
export interface McpAppPolicy {
  readonly connectDomains?: readonly string[];
  readonly resourceDomains?: readonly string[];
  readonly frameDomains?: readonly string[];
  readonly baseUriDomains?: readonly string[];
}

/** @internal The address of a tool's user interface; `undefined` when it has none. */
export function appUriOf(tool: McpTool): string | undefined {
  const ui = tool._meta?.ui as { readonly resourceUri?: unknown } | undefined;
  const uri = ui?.resourceUri ?? tool._meta?.["ui/resourceUri"];
  return typeof uri === "string" && uri.startsWith("ui://") ? uri : undefined;
}

/** @internal The user interface in the contents of its resource. */
export function appOf(uri: string, contents: readonly McpResourceContents[]): McpApp {
  const found = contents.find((part) => part.mimeType?.replaceAll(" ", "") === MEDIA_TYPE);
  const html =
    found?.text ?? (found?.blob === undefined ? undefined : new TextDecoder().decode(fromBase64(found.blob)));
  if (found === undefined || html === undefined) {
    throw new CrabletError({
      kind: "protocol",
      message: `the resource ${uri} is no document of the type ${MEDIA_TYPE}`,
    });
  }
  const { csp, permissions, domain, prefersBorder } = (found._meta?.ui ?? {}) as Partial<McpApp>;
  return {
    uri,
    html,
    ...(csp && { csp }),
    ...(permissions && { permissions }),
    ...(domain && { domain }),
    ...(prefersBorder !== undefined && { prefersBorder }),
  };
}
