// A model server of another origin than the page, whose streams a test moves on by hand.
import { listen } from "./servers.mjs";

const ANTHROPIC_EVENTS = [
  {
    type: "message_start",
    message: { id: "m", role: "assistant", model: "claude", content: [], usage: { input_tokens: 1, output_tokens: 1 } },
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "direct" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
  { type: "message_stop" },
];

/** The headers that the Messages API lets a page send. */
const ANTHROPIC_ALLOWS =
  "content-type, x-api-key, anthropic-version, anthropic-beta, anthropic-dangerous-direct-browser-access";

/**
 * Under `/held/NAME` a Chat Completions stream that says one word and waits; `push` says another one. Under `/anthropic` the
 * Messages API with its rules of origins.
 *
 * @returns {Promise<{ url: string, stop: () => Promise<void>, held: (name: string) => { requests: object[], closed: Promise<void>,
 *   push: () => void }, anthropic: object[] }>}
 */
export async function startCaseServer() {
  const streams = new Map();
  const anthropic = [];
  const held = (name) => {
    if (!streams.has(name)) streams.set(name, stream());
    return streams.get(name);
  };
  const server = await listen(async (request, response) => {
    const [, kind, name] = request.url.split("/");
    if (kind === "anthropic") return answerAnthropic(request, response, anthropic);
    response.setHeader("access-control-allow-origin", "*");
    response.setHeader("access-control-allow-headers", "content-type");
    if (request.method === "OPTIONS") return response.writeHead(204).end();
    await held(name).answer(request, response);
  });
  return { ...server, held, anthropic };
}

function stream() {
  const requests = [];
  let response;
  let close;
  const closed = new Promise((resolve) => {
    close = resolve;
  });
  const push = () =>
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "x" } }] })}\n\n`);
  const answer = async (request, given) => {
    for await (const _ of request);
    requests.push({ headers: request.headers });
    response = given.writeHead(200, { "content-type": "text/event-stream" });
    response.on("close", close);
    push();
  };
  return { requests, closed, push, answer };
}

/** Without leave to be called by pages there are no headers of origins at all. */
async function answerAnthropic(request, response, seen) {
  const wanted = request.headers["access-control-request-headers"]?.split(",") ?? [];
  const isAllowed = [...wanted, ...Object.keys(request.headers)].includes("anthropic-dangerous-direct-browser-access");
  if (isAllowed) response.setHeader("access-control-allow-origin", "*");
  if (request.method === "OPTIONS") {
    seen.push({ wanted });
    if (isAllowed) response.setHeader("access-control-allow-headers", ANTHROPIC_ALLOWS);
    return response.writeHead(204).end();
  }
  for await (const _ of request);
  seen.push({ headers: request.headers });
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(ANTHROPIC_EVENTS.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
}
