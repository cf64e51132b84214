// The agent, for a whole conversation or for a single question.
import { Agent, type AgentEvent, anthropic, mcp, type Model, openaiCompatible, tool } from "crablet";
import type { Env } from "./env.js";

/** How long a question to a person stays open, in milliseconds: a day. */
export const APPROVAL_LIMIT = 24 * 60 * 60 * 1000;

const tools = {
  current_time: tool({
    description: "The current date and time, in UTC.",
    input: { type: "object", properties: {} },
    repeatable: true,
    execute: () => new Date().toISOString(),
  }),
};

export type Tools = typeof tools;

export function agentOf(env: Env, onEvent: (event: AgentEvent<Tools>) => void = () => {}): Agent<Tools> {
  return new Agent({
    model: modelOf(env),
    instructions: "Answer briefly.",
    tools,
    mcpServers: env.MCP_URL === "" ? {} : { tools: mcp.http(env.MCP_URL) },
    // Tools that somebody else wrote ask first.
    beforeToolCall: ({ server }) => (server === undefined ? undefined : { action: "ask" }),
    approvalTimeoutMs: APPROVAL_LIMIT,
    onEvent,
  });
}

function modelOf({ MODEL, MODEL_URL, API_KEY }: Env): Model {
  // A server of one's own may want no key.
  const apiKey = API_KEY ? { apiKey: (): string => API_KEY } : {};
  return MODEL_URL === "" ? anthropic(MODEL, apiKey) : openaiCompatible(MODEL, { ...apiKey, baseUrl: MODEL_URL });
}
