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

/** Where to begin with a tool's input: its required members, with the defaults or something of the right type. */
export function sampleInput(schema: McpTool["inputSchema"]): Record<string, unknown> {
  const properties = asObject(schema.properties);
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.fromEntries(required.map((name) => [String(name), sampleOf(asObject(properties[String(name)]))]));
}

function sampleOf(schema: Readonly<Record<string, unknown>>): unknown {
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  switch (schema.type) {
    case "number":
    case "integer":
      return 0;
    case "boolean":
      return false;
    case "array":
      return [];
    case "object":
      return sampleInput(schema);
    default:
      return "";
  }
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
