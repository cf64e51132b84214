// Stands in for the local Ollama that README snippets name: hands their requests to the demo model, under its own name.
import { json } from "node:stream/consumers";
import { listen } from "./servers.mjs";

/**
 * @param {string} modelUrl the base URL of the demo model
 * @returns {Promise<{ url: string, stop: () => Promise<void> }>} `url` also works as an HTTP proxy
 */
export function startOllamaStandIn(modelUrl) {
  return listen(async (request, response) => {
    try {
      const answer = await fetch(`${modelUrl}/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...(await json(request)), model: "scripted-demo" }),
      });
      response.writeHead(answer.status, {
        "content-type": answer.headers.get("content-type"),
        "access-control-allow-origin": "*",
      });
      for await (const chunk of answer.body) response.write(chunk);
      response.end();
    } catch (error) {
      response.writeHead(502).end(String(error));
    }
  });
}
