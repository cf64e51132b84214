import { ChatOpenAI } from "@langchain/openai";
import { createAgent, tool } from "langchain";
import { z } from "zod";

export function create({ baseUrl }) {
  return async ({ apiKey, turns, tool: work }) => {
    const configuration = { baseURL: `${baseUrl}/v1`, dangerouslyAllowBrowser: true };
    const model = new ChatOpenAI({ model: "bench", apiKey, maxRetries: 0, useResponsesApi: false, configuration });
    const noop = tool(async ({ i }) => work(i), {
      name: "noop",
      description: "does nothing",
      schema: z.object({ i: z.number() }),
    });
    const agent = createAgent({ model, tools: [noop] });
    const options = { recursionLimit: turns * 2 + 20, streamMode: ["messages", "values"] };
    let last;
    const stream = await agent.stream({ messages: [{ role: "user", content: "go" }] }, options);
    for await (const [mode, value] of stream) if (mode === "values") last = value;
    return last.messages.at(-1).text;
  };
}
