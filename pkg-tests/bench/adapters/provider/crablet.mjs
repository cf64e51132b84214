import { Agent, anthropic, openaiCompatible } from "crablet";

export function create({ api, baseUrl, apiKey }) {
  const model =
    api === "openai"
      ? openaiCompatible("bench", { baseUrl: `${baseUrl}/v1`, apiKey })
      : anthropic("bench", { baseUrl, apiKey, dangerouslyAllowBrowser: true });
  const agent = new Agent({ model });
  return async () => {
    let text = "";
    for await (const event of agent.stream("hi")) if (event.type === "text-delta") text += event.delta;
    return text.length;
  };
}
