// What the worker is given: variables of wrangler.jsonc, secrets, the conversations.
import type { Chat } from "./chat.js";

export interface Env {
  readonly CHATS: DurableObjectNamespace<Chat>;
  /** Secret: the key of the model. It never leaves the worker but for the provider. */
  readonly API_KEY?: string;
  /** Secret: opens the chat to those who know it. */
  readonly PASSWORD: string;
  /** The name of the model. */
  readonly MODEL: string;
  /** The address of a server that speaks OpenAI's protocol; empty for Anthropic. */
  readonly MODEL_URL: string;
  /** The address of an MCP server whose tools the agent has too; empty for none. */
  readonly MCP_URL: string;
  /** After how many seconds a run is taken up that was stopped with nobody watching. */
  readonly RESUME_AFTER_SECONDS: string;
}
