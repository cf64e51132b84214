// A model that costs nothing: answers of OpenAI Chat Completions and Anthropic Messages, rendered before they are asked for.
// The API key says what to answer, `bench.MODE.COUNT.SESSION`:
//
//   packed     COUNT deltas in pieces of 64 KiB
//   events     COUNT deltas, one write for each, at most one in a turn of the event loop
//   agent      COUNT answers that call the tool `noop` four times each, then a text
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

/** The text of the n-th delta. */
const word = (number) => ` word${number % 1000}`;

const PIECE = 64 * 1024;
const TYPES = { ".js": "text/javascript", ".html": "text/html", ".wasm": "application/wasm" };

/** Each renders the events of a text of so many words, and of a turn with four calls. */
const wires = { openai: openai(), anthropic: anthropic() };

const rendered = new Map();
const turns = new Map();

const server = createServer(async (request, response) => {
  response.setHeader("access-control-allow-origin", "*");
  response.setHeader("access-control-allow-headers", "*");
  if (request.method === "OPTIONS") return void response.writeHead(204).end();
  if (request.method === "GET") return sendFile(request.url, response);
  for await (const _ of request);
  const key = String(request.headers["x-api-key"] ?? request.headers.authorization).replace(/^Bearer /, "");
  const [, mode, count, session] = key.split(".");
  const wire = wires[request.url.startsWith("/anthropic") ? "anthropic" : "openai"];
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  if (mode === "agent") return response.end(turnOf(wire, session, Number(count)));
  const events = once(`${request.url} ${mode} ${count}`, () => {
    const texts = wire.text(Number(count));
    return mode === "packed" ? pieces(texts.join("")) : texts.map((text) => Buffer.from(text));
  });
  write(response, events);
});

server.keepAliveTimeout = 120_000;
server.listen(0, "127.0.0.1", () => process.send({ port: server.address().port }));
process.on("disconnect", () => process.exit());

/** One piece a turn of the event loop, so that a client that reads at once sees them one by one. */
function write(response, events) {
  response.socket.setNoDelay(true);
  let at = 0;
  const next = () => {
    if (at >= events.length || response.destroyed) return void response.end();
    const hasRoom = response.write(events[at]);
    at += 1;
    if (hasRoom) setImmediate(next);
    else response.once("drain", next);
  };
  next();
}

/** The next answer of a session, with ids that no other answer has. */
function turnOf(wire, session, count) {
  const turn = turns.get(session) ?? 0;
  if (turn < count) turns.set(session, turn + 1);
  else turns.delete(session);
  const events = turn < count ? wire.calls(turn) : wire.text(1);
  return events.join("").replaceAll("ANSWER", `${session}-${turn}`);
}

function openai() {
  const head = { id: "ANSWER", object: "chat.completion.chunk", created: 1_700_000_000, model: "bench" };
  const chunk = (delta, finish = null) =>
    `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] })}\n\n`;
  const usage = { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 };
  const end = (reason) => [
    chunk({}, reason),
    `data: ${JSON.stringify({ ...head, choices: [], usage })}\n\n`,
    "data: [DONE]\n\n",
  ];
  return {
    text: (count) => [
      chunk({ role: "assistant", content: "" }),
      ...Array.from({ length: count }, (_, number) => chunk({ content: word(number) })),
      ...end("stop"),
    ],
    calls: (turn) => [
      chunk({ role: "assistant", content: null }),
      ...[0, 1, 2, 3].flatMap((index) => [
        chunk({
          tool_calls: [
            { index, id: `call_${turn}_${index}`, type: "function", function: { name: "noop", arguments: "" } },
          ],
        }),
        ...['{"i"', ":", `${index}}`].map((part) => chunk({ tool_calls: [{ index, function: { arguments: part } }] })),
      ]),
      ...end("tool_calls"),
    ],
  };
}

function anthropic() {
  const event = (type, members) => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
  const start = () => {
    const usage = { input_tokens: 10, output_tokens: 1 };
    const message = { id: "ANSWER", type: "message", role: "assistant", model: "bench", content: [], usage };
    return event("message_start", { message: { ...message, stop_reason: null, stop_sequence: null } });
  };
  const end = (reason) => [
    event("message_delta", { delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 20 } }),
    event("message_stop", {}),
  ];
  const delta = (index, content) => event("content_block_delta", { index, delta: content });
  return {
    text: (count) => [
      start(),
      event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
      ...Array.from({ length: count }, (_, number) => delta(0, { type: "text_delta", text: word(number) })),
      event("content_block_stop", { index: 0 }),
      ...end("end_turn"),
    ],
    calls: (turn) => [
      start(),
      ...[0, 1, 2, 3].flatMap((index) => [
        event("content_block_start", {
          index,
          content_block: { type: "tool_use", id: `toolu_${turn}_${index}`, name: "noop", input: {} },
        }),
        ...['{"i"', ":", `${index}}`].map((part) => delta(index, { type: "input_json_delta", partial_json: part })),
        event("content_block_stop", { index }),
      ]),
      ...end("tool_use"),
    ],
  };
}

function pieces(text) {
  const bytes = Buffer.from(text);
  const count = Math.ceil(bytes.length / PIECE);
  return Array.from({ length: count }, (_, number) => bytes.subarray(number * PIECE, (number + 1) * PIECE));
}

function once(name, make) {
  if (!rendered.has(name)) rendered.set(name, make());
  return rendered.get(name);
}

/** The bundles of a page, from the same origin as the model. */
async function sendFile(url, response) {
  const path = normalize(decodeURIComponent(url));
  const headers = { "content-type": TYPES[extname(path)] ?? "text/html", "cache-control": "no-store" };
  if (path === "/") return void response.writeHead(200, headers).end("<!doctype html><title>bench</title>");
  try {
    const bytes = await readFile(join(process.env.BUNDLES, path));
    response.writeHead(200, headers).end(bytes);
  } catch {
    response.writeHead(404).end();
  }
}
