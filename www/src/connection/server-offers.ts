// What a server offers, and what is asked of it outside any conversation: each time over a connection of its own.
import {
  type ErrorInfo,
  type FilePart,
  mcp,
  type McpClient,
  type McpCompletionReference,
  type McpContent,
  type McpPrompt,
  type McpPromptResult,
  type McpResource,
  type McpResourceContents,
  type McpResourceTemplate,
  type McpResult,
  type McpServer,
  type McpTool,
  type TextPart,
} from "crablet";
import { infoOf } from "../ui/error-words";

export interface Offers {
  readonly tools: readonly McpTool[];
  readonly resources: readonly McpResource[];
  readonly templates: readonly McpResourceTemplate[];
  readonly prompts: readonly McpPrompt[];
  /** Why resources and prompts are not known. The agent needs the tools only, so that the server is no failed one. */
  readonly problem?: ErrorInfo;
}

/** The lists of all that the server offers. */
export async function listOffers(server: McpServer): Promise<Offers> {
  return connected(server, undefined, async (client) => {
    const tools = await client.tools();
    try {
      const lists = [client.resources(), client.resourceTemplates(), client.prompts()] as const;
      const [resources, templates, prompts] = await Promise.all(lists);
      return { tools, resources, templates, prompts };
    } catch (error) {
      return { tools, resources: [], templates: [], prompts: [], problem: infoOf(error) };
    }
  });
}

/** Calls one tool. */
export async function callTool(
  server: McpServer,
  name: string,
  input: unknown,
  signal: AbortSignal,
): Promise<McpResult> {
  return connected(server, signal, (client) => client.callTool(name, input, { signal }));
}

/** Reads one resource. */
export async function readResource(
  server: McpServer,
  uri: string,
  signal: AbortSignal,
): Promise<readonly McpResourceContents[]> {
  return connected(server, signal, (client) => client.readResource(uri, { signal }));
}

/** Fills a prompt in. */
export async function fillPrompt(
  server: McpServer,
  name: string,
  input: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<McpPromptResult> {
  return connected(server, signal, (client) => client.prompt(name, input, { signal }));
}

/** What a server suggests for an argument of a prompt, or for a part of a template; nothing where it suggests nothing. */
export async function suggest(
  server: McpServer,
  reference: McpCompletionReference,
  argument: { readonly name: string; readonly value: string },
  context: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  return connected(server, signal, async (client) => {
    const { values } = await client.complete(reference, argument, { context, signal });
    return values;
  }).catch(() => []);
}

/** Connects, asks, and hangs up: the agent has a connection of its own. */
async function connected<Value>(
  server: McpServer,
  signal: AbortSignal | undefined,
  ask: (client: McpClient) => Promise<Value>,
): Promise<Value> {
  const client = await mcp.connect(server, signal && { signal });
  try {
    return await ask(client);
  } finally {
    await client.close();
  }
}

/** A result's content as the page shows it. What is neither text nor bytes is shown as its JSON. */
export function partsOf(content: readonly McpContent[]): (TextPart | FilePart)[] {
  return content.map((block) => {
    const { type, text, data, mimeType, resource } = block;
    if (typeof text === "string") return { type: "text", text };
    if ((type === "image" || type === "audio") && typeof data === "string") {
      return { type: type as "image" | "audio", mediaType: String(mimeType), data };
    }
    if (type === "resource" && typeof resource === "object") return partOf(resource as McpResourceContents);
    return { type: "text", text: JSON.stringify(block, undefined, 2) };
  });
}

/** The contents of a resource as the page shows them. */
export function partOf({
  uri,
  text,
  blob,
  mimeType = "application/octet-stream",
}: McpResourceContents): TextPart | FilePart {
  if (text !== undefined) return { type: "text", text };
  const kind = /^(image|audio)\//.exec(mimeType)?.[1] as "image" | "audio" | undefined;
  return { type: kind ?? "file", mediaType: mimeType, name: uri, ...(blob !== undefined && { data: blob }) };
}
