// What examples/mcp_server.rs serves, of the npm package over HTTP: `node notes-server.mjs FOLDER`. Prints its address.
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, httpHandler, McpServer, needsInput, nodeListener, serverTool } from "crablet/server";
import { folderFiles, readingTools } from "crablet/tools";

const count = serverTool({
  description: "Counts, slowly, and says how far it is",
  input: { type: "object", properties: { to: { type: "integer", minimum: 0, maximum: 1000 } }, required: ["to"] },
  outputSchema: { type: "object", properties: { counted: { type: "integer" } }, required: ["counted"] },
  annotations: { readOnlyHint: true },
  execute: async ({ to }, { log, progress, signal }) => {
    log("info", "begun", "count");
    for (let number = 1; number <= to; number += 1) {
      await sleep(10, undefined, { signal });
      progress({ progress: number, total: to, message: "counting" });
    }
    return { counted: to };
  },
});

const greet = serverTool({
  description: "Asks the user for a name and greets",
  input: { type: "object" },
  execute: (_, { inputResponses: { name: answer } }) => {
    const form = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    if (answer === undefined) return needsInput({ name: ask.form("What is your name?", form) });
    return `Hello ${answer.content?.name ?? "whoever you are"}!`;
  },
});

const server = new McpServer({
  name: "notes",
  version: "1.0.0",
  logging: true,
  tools: { ...readingTools(folderFiles(process.argv[2])), count, greet },
  resources: {
    "notes://about": {
      name: "about",
      mimeType: "text/plain",
      read: () => "The notes of a folder, for an agent to read.",
    },
    "notes://echo/{word}": { name: "echo", mimeType: "text/plain", read: (_, { word }) => word },
  },
  prompts: {
    summary: {
      arguments: { topic: { description: "What of", required: true } },
      get: ({ topic }) => `Summarise my notes about ${topic}.`,
    },
  },
  complete: ({ value }) => ["gardening", "geology", "music"].filter((topic) => topic.startsWith(value)),
});

const listening = createServer(nodeListener(httpHandler(server)));
listening.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${listening.address().port}/mcp`));
