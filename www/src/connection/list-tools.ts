// What a server offers.
import { mcp, type McpServer } from "crablet";

export interface ToolInfo {
  readonly name: string;
  readonly description: string;
}

/** Connects, reads the list of tools, and hangs up: the agent has a connection of its own. */
export async function listTools(server: McpServer): Promise<readonly ToolInfo[]> {
  const client = await mcp.connect(server);
  try {
    const tools = await client.tools();
    return tools.map(({ name, description = "" }) => ({ name, description }));
  } finally {
    await client.close();
  }
}
