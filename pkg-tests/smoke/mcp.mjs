// An agent and the official MCP test server over Streamable HTTP, the same in Node and in a page.
import { Agent, mcp, openaiCompatible } from "crablet";

/**
 * @param {{ modelUrl: string, mcpUrl: string }} urls
 * @returns {Promise<string>} a line about what happened
 */
export async function echoThroughMcp({ modelUrl, mcpUrl }) {
  const offered = [];
  const agent = new Agent({
    model: openaiCompatible("scripted-demo", {
      baseUrl: modelUrl,
      fetch: (input, init) => {
        offered.push(
          JSON.parse(typeof init.body === "string" ? init.body : new TextDecoder().decode(init.body)).tools ?? [],
        );
        return fetch(input, init);
      },
    }),
    mcpServers: { everything: mcp.http(mcpUrl) },
  });
  const called = [];
  let text = "";
  try {
    for await (const event of agent.stream('echo the message "crablet says hello"')) {
      if (event.type === "tool-call") called.push(event.toolName);
      if (event.type === "text-delta") text += event.delta;
    }
  } finally {
    await agent.close();
  }
  const count = offered[0]?.length ?? 0;
  return `tools: ${count > 5 ? "more than five" : count}; called: ${called.join(", ")}; answer quotes the echo: ${text.includes("Echo: crablet says hello")}`;
}
