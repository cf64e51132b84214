import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

export function create({ baseUrl }) {
  setTracingDisabled(true);
  return async ({ apiKey, turns, tool: work }) => {
    const client = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey, maxRetries: 0, dangerouslyAllowBrowser: true });
    const noop = tool({
      name: "noop",
      description: "does nothing",
      parameters: z.object({ i: z.number() }),
      execute: async ({ i }) => work(i),
    });
    const model = new OpenAIChatCompletionsModel(client, "bench");
    const agent = new Agent({ name: "bench", instructions: "", model, tools: [noop] });
    const result = await run(agent, "go", { maxTurns: turns + 5, stream: true });
    for await (const _ of result);
    await result.completed;
    return result.finalOutput;
  };
}
