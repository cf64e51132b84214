import { stream } from "@mariozechner/pi-ai";

export function create({ api, baseUrl, apiKey }) {
  const model = piModel(api, baseUrl);
  return async () => {
    let text = "";
    const messages = [{ role: "user", content: "hi", timestamp: 0 }];
    for await (const event of stream(model, { systemPrompt: "", messages }, { apiKey })) {
      if (event.type === "text_delta") text += event.delta;
      if (event.type === "error") throw new Error(event.error.errorMessage);
    }
    return text.length;
  };
}

/** A model as pi wants it described. */
export function piModel(api, baseUrl) {
  return {
    id: "bench",
    name: "bench",
    provider: "bench",
    api: api === "openai" ? "openai-completions" : "anthropic-messages",
    baseUrl: api === "openai" ? `${baseUrl}/v1` : baseUrl,
    reasoning: false,
    input: ["text"],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: 1e9,
    maxTokens: 1000,
  };
}
