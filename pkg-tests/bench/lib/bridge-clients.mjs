// How a client reaches a stdio server: over its own pipes, a WebSocket, Streamable HTTP or the shim. Each is as plain as its
// protocol allows, so that what is measured is the bridge.
import { createHmac, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createParser } from "eventsource-parser";
import { WebSocket } from "ws";

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "bench", version: "1" } },
};

const INITIALIZED = { jsonrpc: "2.0", method: "notifications/initialized" };

/** Larger than any message here. */
const MAX_PAYLOAD = 2 ** 28;

/**
 * @typedef {{ request: (message: object) => Promise<object>, close: () => void }} Client
 */

/** Speaks to a process over its pipes. */
export async function connectPipes(child) {
  const waiting = replies();
  onLines(child.stdout, (line) => waiting.give(line));
  const send = (message) => child.stdin.write(`${JSON.stringify(message)}\n`);
  return open({ send, waiting, close: () => child.stdin.end() });
}

/** Speaks to a bridge that takes one JSON-RPC message a WebSocket message. */
export async function connectWebSocket(url) {
  const socket = new WebSocket(url, { maxPayload: MAX_PAYLOAD, perMessageDeflate: false });
  const waiting = replies();
  socket.on("message", (bytes) => waiting.give(bytes));
  await opened(socket);
  return open({ send: (message) => socket.send(JSON.stringify(message)), waiting, close: () => socket.close() });
}

/** Speaks to a bridge that serves MCP over Streamable HTTP. */
export async function connectHttp(url) {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const request = async (message) => {
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(message) });
    if (!response.ok) throw new Error(`HTTP ${response.status}: ${(await response.text()).slice(0, 200)}`);
    const session = response.headers.get("mcp-session-id");
    if (session) headers["mcp-session-id"] = session;
    if (message.id === undefined) return void (await response.arrayBuffer());
    if (response.headers.get("content-type").startsWith("application/json")) return response.json();
    return replyInStream(response.body, message.id);
  };
  await request(INITIALIZE);
  headers["mcp-protocol-version"] = "2025-06-18";
  await request(INITIALIZED);
  return { request, close: () => {} };
}

/** Speaks `crablet.v1` to a shim: proof, attach, numbered frames. The shim's docs have the wire format. */
export async function connectShim({ port, server, token }) {
  const [keyId, secret] = token.split(".");
  const nonce = randomBytes(16).toString("base64url");
  const now = Date.now();
  const signed = `client|${nonce}|${now}|127.0.0.1:${port}||${server}`;
  const mac = createHmac("sha256", Buffer.from(secret, "base64url")).update(signed).digest("base64url");
  const protocols = ["crablet.v1", `crablet.proof.${keyId}.${nonce}.${now}.${mac}`];
  const url = `ws://127.0.0.1:${port}/servers/${server}`;
  const socket = new WebSocket(url, protocols, { maxPayload: MAX_PAYLOAD, perMessageDeflate: false });
  const waiting = replies();
  const link = numberedLink(socket);
  const attached = new Promise((resolve, reject) => {
    socket.on("message", (bytes) => {
      const kind = bytes[0];
      link.take(bytes);
      if (kind === KIND.message) waiting.give(bytes.subarray(HEADER_BYTES));
      else if (kind === KIND.proof) link.write(KIND.attach, 0, '{"continues":false}');
      else if (kind === KIND.hello) resolve();
      else if (kind === KIND.ping) link.write(KIND.seen, 0, "");
      else if (kind === KIND.gone || kind === KIND.exit) reject(new Error(bytes.toString("utf8", HEADER_BYTES)));
    });
    socket.on("close", () => reject(new Error("the shim closed the connection")));
  });
  await opened(socket);
  await attached;
  return open({ send: (message) => link.send(JSON.stringify(message)), waiting, close: () => socket.close() });
}

const KIND = { proof: 1, attach: 2, hello: 3, message: 4, exit: 5, seen: 6, ping: 7, gone: 9 };
const HEADER_BYTES = 17;

/** As much as may be under way unseen. */
const WINDOW = { frames: 1024, bytes: 2 * 16 * 2 ** 20 };

/** Numbers what is sent, holds to the window, and tells the shim in time what has come. */
function numberedLink(socket) {
  const unseen = [];
  const queue = [];
  let [sent, seen, told, unseenBytes, untoldBytes] = [0, 0, 0, 0, 0];
  const write = (kind, number, text) => {
    const frame = Buffer.allocUnsafe(HEADER_BYTES + Buffer.byteLength(text));
    frame[0] = kind;
    frame.writeBigUInt64BE(BigInt(number), 1);
    frame.writeBigUInt64BE(BigInt(seen), 9);
    frame.write(text, HEADER_BYTES);
    [told, untoldBytes] = [seen, 0];
    socket.send(frame);
  };
  const hasRoom = (text) =>
    unseen.length === 0 || (unseen.length < WINDOW.frames && unseenBytes + text.length <= WINDOW.bytes);
  const flush = () => {
    while (queue.length > 0 && hasRoom(queue[0])) {
      const text = queue.shift();
      unseen.push(text.length);
      unseenBytes += text.length;
      sent += 1;
      write(KIND.message, sent, text);
    }
  };
  const take = (bytes) => {
    const [number, peerSaw] = [Number(bytes.readBigUInt64BE(1)), Number(bytes.readBigUInt64BE(9))];
    while (sent - unseen.length < peerSaw) unseenBytes -= unseen.shift();
    if (number > 0) {
      seen = number;
      untoldBytes += bytes.length;
    }
    flush();
    if (seen - told >= WINDOW.frames / 4 || untoldBytes >= WINDOW.bytes / 4) write(KIND.seen, 0, "");
  };
  const send = (text) => {
    queue.push(text);
    flush();
  };
  return { write, take, send };
}

/** Calls that wait for their answer, by id. */
function replies() {
  const waiting = new Map();
  return {
    wait: (id) => new Promise((resolve) => waiting.set(id, resolve)),
    give: (bytes) => {
      const reply = JSON.parse(bytes);
      waiting.get(reply.id)?.(reply);
      waiting.delete(reply.id);
    },
  };
}

/** @returns {Promise<Client>} */
async function open({ send, waiting, close }) {
  const request = (message) => {
    const reply = waiting.wait(message.id);
    send(message);
    return reply;
  };
  await request(INITIALIZE);
  send(INITIALIZED);
  return { request, close };
}

function opened(socket) {
  return Promise.race([once(socket, "open"), once(socket, "error").then(([error]) => Promise.reject(error))]);
}

/** Pieces of a line are joined when it is complete, not before: joining each time would be quadratic. */
function onLines(stream, take) {
  let pieces = [];
  stream.on("data", (bytes) => {
    let start = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
      const last = bytes.subarray(start, end);
      take(pieces.length > 0 ? Buffer.concat([...pieces, last]) : last);
      pieces = [];
      start = end + 1;
    }
    if (start < bytes.length) pieces.push(bytes.subarray(start));
  });
}

async function replyInStream(body, id) {
  let reply;
  const decoder = new TextDecoder();
  const parser = createParser({
    onEvent: ({ data }) => {
      const message = data ? JSON.parse(data) : {};
      if (message.id === id) reply = message;
    },
  });
  for await (const bytes of body) {
    parser.feed(decoder.decode(bytes, { stream: true }));
    if (reply) return reply;
  }
  throw new Error("the stream ended without the answer");
}
