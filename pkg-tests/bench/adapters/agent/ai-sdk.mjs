import { createOpenAI } from "@ai-sdk/openai";
import { isStepCount, streamText, tool } from "ai";
import { z } from "zod";

export function create({ baseUrl }) {
  return async ({ apiKey, turns, tool: work }) => {
    const result = streamText({
      model: createOpenAI({ baseURL: `${baseUrl}/v1`, apiKey }).chat("bench"),
      prompt: "go",
      maxRetries: 0,
      stopWhen: isStepCount(turns + 5),
      tools: {
        noop: tool({
          description: "does nothing",
          inputSchema: z.object({ i: z.number() }),
          execute: async ({ i }) => work(i),
        }),
      },
      onError: ({ error }) => {
        throw error;
      },
    });
    let text = "";
    for await (const delta of result.textStream) text += delta;
    return text;
  };
}
