// For who wants only the text.
import { Agent, anthropic, openaiCompatible } from "crablet";

export function create({ api, baseUrl, apiKey }) {
  const model =
    api === "openai"
      ? openaiCompatible("bench", { baseUrl: `${baseUrl}/v1`, apiKey })
      : anthropic("bench", { baseUrl, apiKey, dangerouslyAllowBrowser: true });
  const agent = new Agent({ model });
  return async () => {
    let length = 0;
    for await (const text of agent.stream("hi").textStream) length += text.length;
    return length;
  };
}
