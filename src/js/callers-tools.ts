import type { Agent } from "./agent.js";
import { CrabletError } from "./error.js";
import type { AgentOptions } from "./options.js";
import type { JsonSchema } from "./schema.js";
import { type ClientTool, tool } from "./tool.js";

/**
 * The agent with tools that a caller performs, and other changes. It is closed by whoever asked for it.
 *
 * @throws CrabletError `invalid-input` with the status 400 for a tool with the name of one of the agent's, or of its MCP servers:
 *   it could stand in for it.
 *
 * @internal
 */
export async function withCallersTools(
  agent: Agent<any>,
  tools: Readonly<Record<string, ClientTool>>,
  signal: AbortSignal,
  change: (options: AgentOptions<any>) => AgentOptions<any> = (options) => options,
): Promise<Agent<any>> {
  const names = Object.keys(tools);
  const servers = names.length === 0 ? [] : await agent.connect({ signal });
  const ofServers = new Set(servers.flatMap((server) => server.tools.map(({ name }) => name)));
  return agent.derive((own) => {
    const taken = names.find((name) => Object.hasOwn(own.tools ?? {}, name) || ofServers.has(name));
    if (taken !== undefined) {
      throw badRequest(`the tool ${taken} is one of the agent's own: give yours another name`);
    }
    return change({ ...own, tools: { ...own.tools, ...tools } });
  });
}

/**
 * A tool that a request declares, and its caller performs.
 *
 * @throws CrabletError `invalid-input` with the status 400 when its parameters are no JSON Schema.
 *
 * @internal
 */
export function callersTool(name: string, description: unknown, parameters: unknown): ClientTool {
  const input = parameters ?? { type: "object" };
  if (typeof input !== "object") throw badRequest(`the parameters of the tool ${name} are no JSON Schema`);
  return tool({ description: String(description ?? ""), input: input as JsonSchema });
}

function badRequest(message: string): CrabletError {
  return new CrabletError({ kind: "invalid-input", status: 400, message });
}
