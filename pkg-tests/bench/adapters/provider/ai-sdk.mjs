import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { streamText } from "ai";

export function create({ api, baseUrl, apiKey }) {
  const options = { baseURL: `${baseUrl}/v1`, apiKey };
  const model = api === "openai" ? createOpenAI(options).chat("bench") : createAnthropic(options)("bench");
  return async () => {
    let text = "";
    const onError = ({ error }) => {
      throw error;
    };
    for await (const delta of streamText({ model, prompt: "hi", maxRetries: 0, onError }).textStream) text += delta;
    return text.length;
  };
}
