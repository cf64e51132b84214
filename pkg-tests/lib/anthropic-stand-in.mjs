// Stands in for Anthropic's Messages, as its documentation shows the stream: calls the first tool that it is offered, then answers
// with the result; without tools it says what it was asked.
import { folderOf, listen } from "./servers.mjs";

/**
 * @param {{ folder?: string }} [options] a folder whose files it serves as well
 * @returns {Promise<{ url: string, keys: Set<string>, requests: object[], stop: () => Promise<void> }>} `keys` has what clients authorized
 *   themselves with
 */
export async function startAnthropicStandIn({ folder } = {}) {
  const keys = new Set();
  const requests = [];
  const serveFile = folder === undefined ? undefined : folderOf(folder);
  const server = await listen(async (request, response) => {
    response.setHeader("access-control-allow-origin", "*");
    response.setHeader("access-control-allow-headers", request.headers["access-control-request-headers"] ?? "*");
    if (request.method === "OPTIONS") return response.writeHead(204).end();
    if (request.method !== "POST" || !request.url.endsWith("/v1/messages")) {
      if (serveFile !== undefined && request.method === "GET") return serveFile(request, response);
      return response.writeHead(404).end();
    }
    if (request.headers["x-api-key"]) keys.add(request.headers["x-api-key"]);
    let text = "";
    for await (const piece of request) text += piece;
    const asked = JSON.parse(text);
    requests.push(asked);
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of answerTo(asked)) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    response.end();
  });
  return { url: server.url, keys, requests, stop: server.stop };
}

function answerTo({ model, messages, tools = [] }) {
  const content = messages.at(-1).content;
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const result = parts.find(({ type }) => type === "tool_result");
  const isCall = result === undefined && tools.length > 0;
  const said = result === undefined ? `you asked: ${parts.map(({ text }) => text).join("")}` : textOf(result.content);
  const block = isCall
    ? [
        { type: "tool_use", id: "toolu_1", name: tools[0].name, input: {} },
        { type: "input_json_delta", partial_json: "{}" },
      ]
    : [
        { type: "text", text: "" },
        { type: "text_delta", text: said },
      ];
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: "msg_1", type: "message", role: "assistant", content: [], model, stop_reason: null, usage };
  return [
    { type: "message_start", message },
    { type: "content_block_start", index: 0, content_block: block[0] },
    { type: "content_block_delta", index: 0, delta: block[1] },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: isCall ? "tool_use" : "end_turn" }, usage: { output_tokens: 2 } },
    { type: "message_stop" },
  ];
}

const textOf = (content) => (typeof content === "string" ? content : content.map(({ text }) => text).join(""));
