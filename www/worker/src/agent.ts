// The agent: in the worker, and in a browser that works on a conversation by itself.
import { Agent, type AgentEvent, anthropic, mcp, type Model, openaiCompatible, tool } from "crablet";

/** What differs between the places where the agent works. */
export interface Place {
  readonly model: Model;
  /** The address of an MCP server whose tools the agent has too. */
  readonly mcpUrl: string | undefined;
  /** Whether a person is asked before a tool of that server runs. */
  readonly mcpAsks: boolean;
  /** How long a question to a person stays open, in milliseconds. */
  readonly approvalTimeoutMs: number;
  readonly onEvent?: (event: AgentEvent) => void;
}

const tools = {
  current_time: tool({
    description: "The current date and time, in UTC.",
    input: { type: "object", properties: {} },
    repeatable: true,
    execute: () => new Date().toISOString(),
  }),
};

export type Tools = typeof tools;

export function agentOf({ model, mcpUrl, mcpAsks, approvalTimeoutMs, onEvent = () => {} }: Place): Agent<Tools> {
  return new Agent({
    model,
    instructions: "Answer briefly.",
    tools,
    mcpServers: mcpUrl === undefined ? {} : { tools: mcp.http(mcpUrl) },
    // Tools that somebody else wrote ask first.
    beforeToolCall: ({ server }) => (server !== undefined && mcpAsks ? { action: "ask" } : undefined),
    approvalTimeoutMs,
    // The deadline of a run holds in whatever place it goes on.
    timeoutMs: RUN_LIMIT,
    onEvent,
  });
}

/** What one run may take, the time that people need to answer included: a week, in milliseconds. */
const RUN_LIMIT = 7 * 24 * 60 * 60 * 1000;

/** The protocol that the model's server speaks. */
export type Protocol = "anthropic" | "openai";

export function modelOf(
  protocol: Protocol,
  name: string,
  options: { readonly baseUrl?: string; readonly apiKey?: () => string },
): Model {
  if (protocol === "anthropic") return anthropic(name, options);
  return openaiCompatible(name, { ...options, baseUrl: options.baseUrl ?? "" });
}
