import OpenAI from "openai";

export const supports = ["openai"];

export function create({ baseUrl, apiKey }) {
  const client = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey, maxRetries: 0, dangerouslyAllowBrowser: true });
  return async () => {
    let text = "";
    const messages = [{ role: "user", content: "hi" }];
    const stream = await client.chat.completions.create({ model: "bench", stream: true, messages });
    for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
    return text.length;
  };
}
