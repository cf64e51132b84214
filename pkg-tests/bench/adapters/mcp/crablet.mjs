import { mcp } from "crablet";

export async function connect(url) {
  const client = await mcp.connect(mcp.http(url));
  const call = async (size) => {
    const { content } = await client.callTool("echo", { size });
    return content[0].text.length;
  };
  return { call, close: () => client.close() };
}
