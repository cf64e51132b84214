// The agent and its conversation. It is in IndexedDB, so that it is still there when the page is loaded anew.
import { Agent, openaiCompatible, type Session, tool } from "crablet";
import { indexedDbStore } from "crablet/stores";

/** Which model answers. Its key is a function's business: it is asked before each request and kept by nobody else. */
export interface Connection {
  readonly baseUrl: string;
  readonly model: string;
  readonly key: string;
}

const tools = {
  set_theme: tool({
    description: "Shows the page in light or dark colours.",
    input: {
      type: "object",
      properties: { theme: { type: "string", enum: ["light", "dark"] } },
      required: ["theme"],
    },
    needsApproval: true,
    execute: ({ theme }) => {
      document.documentElement.dataset.theme = theme;
      return `The page is ${theme} now.`;
    },
  }),
};

export type ChatSession = Session<typeof tools>;

/** Opens the conversation. What was at work in it when the page was closed goes on. */
export async function openSession({ baseUrl, model, key }: Connection): Promise<ChatSession> {
  const agent = new Agent({
    model: openaiCompatible(model, { baseUrl, ...(key !== "" && { apiKey: () => key }) }),
    instructions: "Answer briefly.",
    tools,
  });
  const session = await agent.open("chat", indexedDbStore());
  session.resume();
  return session;
}
