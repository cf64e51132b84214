// The official MCP test server over Streamable HTTP, by itself and as the tools of an agent, the same in Node and in a page.
import { Agent, mcp, openaiCompatible } from "crablet";

/**
 * @param {{ modelUrl: string, mcpUrl: string }} urls
 * @returns {Promise<string>} a line about what happened
 */
export async function echoThroughMcp({ modelUrl, mcpUrl }) {
  return `${await echoByHand(mcpUrl)}; ${await echoByAgent(modelUrl, mcpUrl)}`;
}

async function echoByHand(mcpUrl) {
  const client = await mcp.connect(mcp.http(mcpUrl));
  try {
    const names = (await client.tools()).map((tool) => tool.name);
    const { content, isError } = await client.callTool("echo", { message: "by hand" });
    return `has echo: ${names.includes("echo")}; says: ${content.map((part) => part.text).join("")}; failed: ${isError}`;
  } finally {
    await client.close();
  }
}

async function echoByAgent(modelUrl, mcpUrl) {
  const agent = new Agent({
    model: openaiCompatible("scripted-demo", { baseUrl: modelUrl }),
    mcpServers: { everything: mcp.http(mcpUrl) },
  });
  const called = [];
  let text = "";
  try {
    for await (const event of agent.stream('everything echo "hello from crablet"')) {
      if (event.type === "tool-call") called.push(event.toolName);
      if (event.type === "text-delta") text += event.delta;
    }
  } finally {
    await agent.close();
  }
  return `agent called: ${called.join(", ")}; answer quotes the echo: ${text.includes("Echo: hello from crablet")}`;
}
