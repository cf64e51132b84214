// A Streamable HTTP MCP server that costs next to nothing: `/json` answers with JSON, `/sse` with a stream of one event. Its
// tool `echo` gives a text of the asked size. It speaks revision 2025-11-25.
import { createServer } from "node:http";

const SIZES = [100, 2 ** 20];
const texts = new Map(SIZES.map((size) => [size, "x".repeat(size)]));
const schema = { type: "object", properties: { size: { type: "number" } }, required: ["size"] };

const server = createServer(async (request, response) => {
  response.setHeader("access-control-allow-origin", "*");
  response.setHeader("access-control-allow-headers", "*");
  response.setHeader("access-control-expose-headers", "*");
  if (request.method === "OPTIONS") return void response.writeHead(204).end();
  if (request.method !== "POST") return void response.writeHead(405).end();
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const message = JSON.parse(Buffer.concat(pieces));
  if (message.id === undefined) return void response.writeHead(202).end();
  const result = resultOf(message);
  const outcome = result ? { result } : { error: { code: -32601, message: "unknown method" } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: message.id, ...outcome });
  if (message.method === "initialize") response.setHeader("mcp-session-id", "bench");
  const isStream = request.url.startsWith("/sse");
  response.writeHead(200, { "content-type": isStream ? "text/event-stream" : "application/json" });
  response.end(isStream ? `event: message\nid: 1\ndata: ${body}\n\n` : body);
});

server.keepAliveTimeout = 120_000;
server.listen(0, "127.0.0.1", () => process.send({ port: server.address().port }));
process.on("disconnect", () => process.exit());

function resultOf({ method, params }) {
  const serverInfo = { name: "bench", version: "1" };
  if (method === "initialize") {
    return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo };
  }
  if (method === "tools/list")
    return { tools: [{ name: "echo", description: "a text of a size", inputSchema: schema }] };
  if (method === "tools/call") return { content: [{ type: "text", text: texts.get(params.arguments.size) }] };
  return method === "ping" ? {} : undefined;
}
