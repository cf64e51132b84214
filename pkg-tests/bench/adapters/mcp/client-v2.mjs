import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

export async function connect(url) {
  const client = new Client({ name: "bench", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const call = async (size) => {
    const { content } = await client.callTool({ name: "echo", arguments: { size } });
    return content[0].text.length;
  };
  return { call, close: () => client.close() };
}
