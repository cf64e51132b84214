// What a server offers, and a call of it outside any conversation.
import { mcp, type McpResult, type McpServer, type McpTool } from "crablet";

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
