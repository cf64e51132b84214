// What a server offers, and a call of it outside any conversation.
import {
  type FilePart,
  mcp,
  type McpContent,
  type McpResult,
  type McpServer,
  type McpTool,
  type TextPart,
} from "crablet";

/** Connects, reads the list of tools, and hangs up: the agent has a connection of its own. */
export async function listTools(server: McpServer): Promise<readonly McpTool[]> {
  const client = await mcp.connect(server);
  try {
    return await client.tools();
  } finally {
    await client.close();
  }
}

/** Connects, calls one tool, and hangs up. */
export async function callTool(
  server: McpServer,
  name: string,
  input: unknown,
  signal: AbortSignal,
): Promise<McpResult> {
  const client = await mcp.connect(server, { signal });
  try {
    return await client.callTool(name, input, { signal });
  } finally {
    await client.close();
  }
}

/** A result's content as the page shows it. What is neither text nor bytes is shown as its JSON. */
export function partsOf(content: readonly McpContent[]): (TextPart | FilePart)[] {
  return content.map((block) => {
    const { type, text, data, mimeType } = block;
    if (typeof text === "string") return { type: "text", text };
    if ((type === "image" || type === "audio") && typeof data === "string") {
      return { type: type as "image" | "audio", mediaType: String(mimeType), data };
    }
    return { type: "text", text: JSON.stringify(block, undefined, 2) };
  });
}
