import Anthropic from "@anthropic-ai/sdk";

export const supports = ["anthropic"];

export function create({ baseUrl, apiKey }) {
  const client = new Anthropic({ baseURL: baseUrl, apiKey, maxRetries: 0, dangerouslyAllowBrowser: true });
  return async () => {
    let text = "";
    const messages = [{ role: "user", content: "hi" }];
    const stream = await client.messages.create({ model: "bench", max_tokens: 1000, stream: true, messages });
    for await (const event of stream) if (event.type === "content_block_delta") text += event.delta.text;
    return text.length;
  };
}
