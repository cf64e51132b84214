// A file read by an agent through the shim, the same in every runtime that has a WebSocket.
import { Agent, mcp, openaiCompatible } from "crablet";

/**
 * @param {{ modelUrl: string, shimUrl: string, code: string, server: string, file: string }} given `code` is what
 *   `crablet-shim pair` shows
 * @returns {Promise<string>} the answer
 */
export async function readThroughShim({ modelUrl, shimUrl, code, server, file }) {
  const { token, servers } = await mcp.pairShim({ url: shimUrl, code });
  if (servers.join() !== server) throw new Error(`the pairing opens ${servers}`);
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
