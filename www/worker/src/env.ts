// What the worker is given: variables of wrangler.jsonc, secrets, the objects.
import type { Model } from "crablet";
import { modelOf, type Place, type Protocol } from "./agent.js";
import type { Chat } from "./chat.js";
import type { Directory } from "./directory.js";

export interface Env {
  readonly CHATS: DurableObjectNamespace<Chat>;
  readonly DIRECTORIES: DurableObjectNamespace<Directory>;
  /** Secret: the key of the model. It never leaves the worker but for the provider. */
  readonly API_KEY?: string;
  /** Secret: opens the chats to those who know it. */
  readonly PASSWORD: string;
  /** The name of the model. */
  readonly MODEL: string;
  /** The address of a server that speaks OpenAI's protocol; empty for Anthropic. */
  readonly MODEL_URL: string;
  /** The address of an MCP server whose tools the agent has too; empty for none. */
  readonly MCP_URL: string;
  /** Whether a person is asked before a tool of that server runs: `yes`, or `no` where the server is yours. */
  readonly MCP_ASKS: string;
  /** After how many seconds a run is taken up that was stopped with nobody watching. */
  readonly RESUME_AFTER_SECONDS: string;
  /** After how many seconds a question to a person is over. */
  readonly APPROVAL_SECONDS: string;
  /** After how many seconds a conversation is taken back from a browser that says nothing. */
  readonly LEASE_SECONDS: string;
  /** After how many seconds a conversation is forgotten that nobody came back to. */
  readonly FORGET_AFTER_SECONDS: string;
}

export const protocolOf = ({ MODEL_URL }: Env): Protocol => (MODEL_URL === "" ? "anthropic" : "openai");

/** The agent's place in the worker itself. */
export const ownPlace = (env: Env): Place => ({
  model: ownModel(env),
  mcpUrl: env.MCP_URL === "" ? undefined : env.MCP_URL,
  mcpAsks: env.MCP_ASKS !== "no",
  approvalTimeoutMs: Number(env.APPROVAL_SECONDS) * 1_000,
});

/** The model with the key, for the worker itself. */
function ownModel(env: Env): Model {
  const { MODEL, MODEL_URL, API_KEY } = env;
  return modelOf(protocolOf(env), MODEL, {
    ...(MODEL_URL === "" ? {} : { baseUrl: MODEL_URL }),
    // A server of one's own may want no key.
    ...(API_KEY ? { apiKey: () => API_KEY } : {}),
  });
}
