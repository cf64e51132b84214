// A server of the official TypeScript SDK that speaks the stateless revision: `node stateless-server.mjs PORT`.
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, inputRequired, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

let release;
const released = new Promise((resolve) => {
  release = resolve;
});

const form = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };

function server() {
  const server = new McpServer(
    { name: "stateless", version: "1.0.0" },
    { capabilities: { tools: { listChanged: true } } },
  );
  const sum = { inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }) };
  server.registerTool("sum", { description: "Adds two numbers", ...sum }, ({ a, b }) => ({
    content: [{ type: "text", text: `${a + b}` }],
    structuredContent: { sum: a + b },
  }));
  server.registerTool("greet", { description: "Asks for a name", inputSchema: z.object({}) }, (_input, context) => {
    const answer = context.mcpReq.inputResponses?.who;
    if (answer === undefined) {
      const who = inputRequired.elicit({ message: "Who are you?", requestedSchema: form });
      return inputRequired({ inputRequests: { who }, requestState: "state" });
    }
    return { content: [{ type: "text", text: `hello ${answer.content?.name}` }] };
  });
  const amount = { inputSchema: z.object({ bytes: z.number() }) };
  server.registerTool("produce", { description: "Gives so many bytes", ...amount }, ({ bytes }) => ({
    content: [{ type: "text", text: "x".repeat(bytes) }],
  }));
  const nothing = z.object({});
  server.registerTool("hold", { description: "Answers once release was called", inputSchema: nothing }, async () => {
    await released;
    return { content: [{ type: "text", text: "released" }] };
  });
  server.registerTool("release", { description: "Lets hold answer", inputSchema: nothing }, () => {
    release();
    return { content: [] };
  });
  server.registerTool("change", { description: "Says that the tools changed", inputSchema: z.object({}) }, () => {
    setTimeout(() => handler.notify.toolsChanged(), 50);
    return { content: [] };
  });
  return server;
}

const handler = createMcpHandler(server);
createServer(toNodeHandler(handler)).listen(Number(process.argv[2]), "127.0.0.1");
