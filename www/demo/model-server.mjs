// The demo model: a local server that speaks the OpenAI Chat wire with streaming and needs no key. It is scripted, and says so in the
// name it answers with. Its bad modes, chosen by model name, fail in the ways that real servers do.
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { MODEL_NAME, decide } from "./scripted-model.mjs";

/** The largest request body, in bytes: many times a long conversation, far from what hurts the machine. */
const MAX_BODY = 8 * 1024 * 1024;

/** The most code points of one delta: small, so that the streaming is seen. */
const DELTA_LENGTH = 14;

/** How many deltas the bad modes send before they fail. */
const DELTAS_BEFORE_FAILURE = 6;

/** What each model name does. All but the first are for the bad-input tests. */
export const MODELS = {
  [MODEL_NAME]: "answers from the tools it is offered",
  slow: "the same, with two seconds between deltas",
  silent: "accepts the request and never answers",
  "bad-key": "401, as for a wrong key",
  overloaded: "503, always",
  "overloaded-once": "503 once, then answers",
  "error-200": "status 200 with an error as its body",
  "error-in-stream": "some deltas, then an error in the stream",
  cut: "some deltas, then the connection breaks",
  "cut-clean": "some deltas, then the stream ends without its end marker",
  "malformed-arguments": "a tool call whose arguments are not JSON",
  "unknown-tool": "a call of a tool that nobody offered",
};

/**
 * Starts the server on the loopback interface.
 *
 * @param {{ port?: number, delay?: number, log?: (line: string) => void }} [options] `delay` is the time between deltas in milliseconds
 * @returns {Promise<{ url: string, close: () => Promise<void> }>} `url` is the base URL, ending in `/v1`
 */
export async function startModelServer({ port = 0, delay = 12, log = () => {} } = {}) {
  const state = { delay, log, requests: 0, failedOnce: false };
  const server = createServer((request, response) => {
    answer(request, response, state).catch((error) => {
      log(`failed: ${error.message}`);
      response.destroy();
    });
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(request, response, state) {
  allowPages(request, response);
  const { pathname } = new URL(request.url ?? "/", "http://localhost");
  if (request.method === "OPTIONS") {
    response.writeHead(204).end();
  } else if (request.method === "GET" && pathname === "/v1/models") {
    sendJson(response, 200, {
      object: "list",
      data: Object.keys(MODELS).map((id) => ({ id, object: "model", owned_by: "crablet-demo" })),
    });
  } else if (request.method === "POST" && pathname === "/v1/chat/completions") {
    await complete(request, response, state);
  } else {
    sendError(
      response,
      404,
      "not_found",
      `There is no ${request.method} ${pathname} here. Try POST /v1/chat/completions or GET /v1/models.`,
    );
  }
}

async function complete(request, response, state) {
  const body = await readJson(request, response);
  if (!body) return;
  const number = ++state.requests;
  const mode = body.model ?? MODEL_NAME;
  state.log(`request ${number}: ${mode}, ${body.messages?.length ?? 0} messages, ${body.tools?.length ?? 0} tools`);
  if (!(mode in MODELS)) {
    return sendError(
      response,
      404,
      "model_not_found",
      `The model \`${mode}\` does not exist; GET /v1/models lists those that do.`,
    );
  }
  if (refuse(mode, response, state)) return;

  const turn = turnFor(mode, body);
  if (body.stream !== true) return sendJson(response, 200, completion(number, turn));

  const closed = new AbortController();
  let sent = 0;
  response.on("close", () => {
    if (!response.writableFinished) {
      state.log(`request ${number}: the client closed the stream after ${sent} deltas`);
      closed.abort();
    }
  });
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" });
  if (mode === "silent") return;
  const pause = mode === "slow" ? 2_000 : state.delay;
  for (const chunk of chunksOf(number, turn, body)) {
    if (sent >= DELTAS_BEFORE_FAILURE && breakOff(mode, response)) return;
    if (!response.write(`data: ${JSON.stringify(chunk)}\n\n`)) await drained(response, closed.signal);
    sent += 1;
    if (pause > 0) await sleep(pause, undefined, { signal: closed.signal }).catch(() => {});
    if (closed.signal.aborted) return;
  }
  response.end("data: [DONE]\n\n");
}

/** The bad modes that never begin to stream. True when the response was sent. */
function refuse(mode, response, state) {
  switch (mode) {
    case "bad-key":
      sendError(response, 401, "invalid_api_key", "Incorrect API key provided.");
      return true;
    case "overloaded":
      sendError(response, 503, "overloaded", "The model is overloaded with other requests.");
      return true;
    case "overloaded-once":
      if (state.failedOnce) return false;
      state.failedOnce = true;
      sendError(response, 503, "overloaded", "The model is overloaded with other requests.", { "retry-after": "1" });
      return true;
    case "error-200":
      sendError(response, 200, "server_error", "The model failed after the status was sent.");
      return true;
    default:
      return false;
  }
}

/** The bad modes that fail in the middle of the stream. True when the response is over. */
function breakOff(mode, response) {
  switch (mode) {
    case "cut":
      response.destroy();
      return true;
    case "cut-clean":
      response.end();
      return true;
    case "error-in-stream":
      response.end(
        `data: ${JSON.stringify({ error: { message: "The model failed while it was answering.", type: "server_error", code: "server_error" } })}\n\n`,
      );
      return true;
    default:
      return false;
  }
}

function turnFor(mode, body) {
  const answered = body.messages?.at(-1)?.role === "tool";
  if (!answered && mode === "malformed-arguments") {
    const name = body.tools?.[0]?.function?.name ?? "read_text_file";
    return { reasoning: "", text: "", calls: [{ name, arguments: '{"path": "welcome.md' }] };
  }
  if (!answered && mode === "unknown-tool") {
    return { reasoning: "", text: "", calls: [{ name: "no_such_tool", arguments: "{}" }] };
  }
  if (mode.startsWith("cut") || mode === "error-in-stream") {
    return {
      reasoning: "",
      text: "This answer is cut off before its end, as happens when a connection breaks while a model is still speaking.",
      calls: [],
    };
  }
  return decide(body);
}

function* chunksOf(number, turn, body) {
  const head = {
    id: `chatcmpl-demo-${number}`,
    object: "chat.completion.chunk",
    created: Math.floor(Date.now() / 1000),
    model: MODEL_NAME,
  };
  const chunk = (delta, finish = null) => ({ ...head, choices: [{ index: 0, delta, finish_reason: finish }] });
  yield chunk({ role: "assistant", content: "" });
  for (const piece of pieces(turn.reasoning)) yield chunk({ reasoning_content: piece });
  for (const piece of pieces(turn.text)) yield chunk({ content: piece });
  for (const [index, call] of turn.calls.entries()) {
    yield chunk({
      tool_calls: [
        { index, id: `call_${number}_${index}`, type: "function", function: { name: call.name, arguments: "" } },
      ],
    });
    for (const piece of pieces(call.arguments))
      yield chunk({ tool_calls: [{ index, function: { arguments: piece } }] });
  }
  yield chunk({}, turn.calls.length > 0 ? "tool_calls" : "stop");
  if (body.stream_options?.include_usage) yield { ...head, choices: [], usage: usageOf(turn, body) };
}

function completion(number, turn) {
  const calls = turn.calls.map((call, index) => ({ id: `call_${number}_${index}`, type: "function", function: call }));
  const message = { role: "assistant", content: turn.text || null, ...(calls.length > 0 && { tool_calls: calls }) };
  return {
    id: `chatcmpl-demo-${number}`,
    object: "chat.completion",
    created: Math.floor(Date.now() / 1000),
    model: MODEL_NAME,
    choices: [{ index: 0, message, finish_reason: calls.length > 0 ? "tool_calls" : "stop" }],
    usage: usageOf(turn, {}),
  };
}

/** Counts as a tokenizer roughly would: four characters a token. */
function usageOf(turn, body) {
  const prompt_tokens = Math.ceil(JSON.stringify(body.messages ?? []).length / 4);
  const completion_tokens = Math.ceil(
    (turn.text.length + turn.reasoning.length + JSON.stringify(turn.calls).length) / 4,
  );
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

function* pieces(text) {
  const points = Array.from(text);
  for (let start = 0; start < points.length; start += DELTA_LENGTH)
    yield points.slice(start, start + DELTA_LENGTH).join("");
}

async function readJson(request, response) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MAX_BODY) {
      sendError(response, 413, "request_too_large", `The request is larger than ${MAX_BODY} bytes.`);
      return undefined;
    }
    chunks.push(chunk);
  }
  try {
    const body = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    if (body !== null && typeof body === "object" && !Array.isArray(body)) return body;
  } catch {
    // Told below: what is not JSON is as wrong as what is not an object.
  }
  sendError(response, 400, "invalid_json", "The request body is not a JSON object.");
  return undefined;
}

async function drained(response, signal) {
  await new Promise((resolve) => {
    response.once("drain", resolve);
    signal.addEventListener("abort", resolve, { once: true });
  });
}

/** Pages of any origin may call: the server holds no secret and does nothing but answer. */
function allowPages(request, response) {
  response.setHeader("access-control-allow-origin", "*");
  response.setHeader("access-control-allow-methods", "GET, POST, OPTIONS");
  response.setHeader(
    "access-control-allow-headers",
    request.headers["access-control-request-headers"] ?? "authorization, content-type",
  );
  response.setHeader("access-control-allow-private-network", "true");
  response.setHeader("access-control-max-age", "600");
}

function sendError(response, status, code, message, headers = {}) {
  sendJson(response, status, { error: { message, type: code, param: null, code } }, headers);
}

function sendJson(response, status, body, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const server = await startModelServer({ port: Number(process.env.PORT ?? 0), log: (line) => console.log(line) });
  console.log(`${MODEL_NAME} (scripted, no key) listens at ${server.url}`);
}
