// A file read by an agent through the shim, the same in every runtime that has a WebSocket.
import { Agent, mcp, openaiCompatible } from "crablet";

/**
 * @param {{ modelUrl: string, shimUrl: string, token: string, server: string, file: string }} given
 * @returns {Promise<string>} the answer
 */
export async function readThroughShim({ modelUrl, shimUrl, token, server, file }) {
  const agent = new Agent({
    model: openaiCompatible("scripted-demo", { baseUrl: modelUrl }),
    mcpServers: { [server]: mcp.shim({ url: shimUrl, token, server }) },
  });
  try {
    const { text } = await agent.run(`Read ${file}`);
    return text;
  } finally {
    await agent.close();
  }
}
