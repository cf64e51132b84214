import { createMCPClient } from "@ai-sdk/mcp";

export async function connect(url) {
  const client = await createMCPClient({ transport: { type: "http", url } });
  const { echo } = await client.tools();
  const call = async (size) => {
    const { content } = await echo.execute({ size }, { toolCallId: "x", messages: [] });
    return content[0].text.length;
  };
  return { call, close: () => client.close() };
}
