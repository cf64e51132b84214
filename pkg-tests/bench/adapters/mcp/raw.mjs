// A fetch a call, and JSON.parse of its answer.
import { createParser } from "eventsource-parser";

export async function connect(url) {
  let id = 0;
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const request = async (method, params) => {
    id += 1;
    const body = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    const response = await fetch(url, { method: "POST", headers, body });
    if (response.headers.get("content-type").startsWith("application/json")) return (await response.json()).result;
    let result;
    const decoder = new TextDecoder();
    const parser = createParser({
      onEvent: ({ data }) => {
        result = JSON.parse(data).result;
      },
    });
    const reader = response.body.getReader();
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      parser.feed(decoder.decode(read.value, { stream: true }));
    }
    return result;
  };
  const clientInfo = { name: "raw", version: "1" };
  await request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
  headers["mcp-session-id"] = "bench";
  headers["mcp-protocol-version"] = "2025-11-25";
  const call = async (size) => {
    const { content } = await request("tools/call", { name: "echo", arguments: { size } });
    return content[0].text.length;
  };
  return { call, close: () => {} };
}
