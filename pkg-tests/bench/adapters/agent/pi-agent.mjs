import { Agent } from "@mariozechner/pi-agent-core";
import { Type } from "@mariozechner/pi-ai";
import { piModel } from "../provider/pi-ai.mjs";

export function create({ baseUrl }) {
  return async ({ apiKey, tool }) => {
    const noop = {
      name: "noop",
      label: "noop",
      description: "does nothing",
      parameters: Type.Object({ i: Type.Number() }),
      execute: async (_id, { i }) => ({ content: [{ type: "text", text: await tool(i) }], details: {} }),
    };
    const agent = new Agent({
      getApiKey: () => apiKey,
      toolExecution: "parallel",
      initialState: {
        systemPrompt: "",
        model: piModel("openai", baseUrl),
        thinkingLevel: "off",
        messages: [],
        tools: [noop],
      },
    });
    await agent.prompt("go");
    const last = agent.state.messages.at(-1);
    if (last.errorMessage) throw new Error(last.errorMessage);
    return last.content[0].text;
  };
}
