// A page in a real Chromium, and legacy MCP servers of other origins whose CORS rules lack something.
import assert from "node:assert/strict";
import { json } from "node:stream/consumers";
import { withPage } from "../lib/browser.mjs";
import { listen } from "../lib/servers.mjs";
import { handshakeServer } from "../lib/mcp-servers.mjs";
import { servePage } from "./bundler.mjs";

/** Far above what two lists and two calls take; a client that connects again and again is beyond it. */
const REQUEST_LIMIT = 40;

export default async function cors(project) {
  const page = await servePage(project);
  try {
    await withPage(async (tab) => {
      await tab.goto(page.url);
      const talk = async (server) => {
        const seen = await tab.evaluate((url) => window.talkTo(url), server.url);
        await server.stop();
        assert.ok(server.requests.length < REQUEST_LIMIT, `${server.requests.length} requests: ${server.requests}`);
        return seen;
      };
      await sessionless(talk);
      await hiddenSession(talk);
      await forbiddenSession(talk);
      await silent(talk);
    });
  } finally {
    await page.stop();
  }
  return "servers of another origin whose preflight allows little work from Chromium, or fail with what to change";
}

/** A server without sessions that allows nothing but `content-type`: works, after one try with the version header. */
async function sessionless(talk) {
  const server = await startLegacy({ allow: "content-type" });
  const seen = await talk(server);
  assert.deepEqual(seen.texts, ["one", "two"]);
  assert.deepEqual(seen.errors, []);
  assert.equal(seen.warnings.length, 1);
  assert.match(seen.warnings[0], /MCP-Protocol-Version/);
  // The probe, and the first request after initialize: what was learnt then holds for the rest.
  const asked = server.requests.filter((request) => /^OPTIONS .*mcp-protocol-version/.test(request));
  assert.equal(asked.length, 2, server.requests.join("\n"));
}

/** A server whose session id the page cannot read. */
async function hiddenSession(talk) {
  const { texts, errors } = await talk(await startLegacy({ allow: "*", session: "s-1" }));
  assert.deepEqual(texts, []);
  assertNamesHeaders(errors);
}

/** A server whose session id the page can read and may not send. */
async function forbiddenSession(talk) {
  const { texts, errors } = await talk(
    await startLegacy({ allow: "content-type", expose: "mcp-session-id", session: "s-1" }),
  );
  assert.deepEqual(texts, []);
  assertNamesHeaders(errors);
}

/** A server without any CORS rules. */
async function silent(talk) {
  const { errors } = await talk(await startLegacy({}));
  assert.equal(errors[0].kind, "network");
  assert.match(errors[0].message, /Access-Control-Allow-Headers.*mcp-protocol-version/);
}

function assertNamesHeaders(errors) {
  assert.equal(errors.length, 2);
  for (const { message } of errors) {
    for (const name of ["content-type", "mcp-session-id", "mcp-protocol-version", "last-event-id"]) {
      assert.match(message, new RegExp(name));
    }
    assert.match(message, /Mcp-Session-Id in Access-Control-Expose-Headers/);
    assert.match(message, /Access-Control-Allow-Headers/);
  }
}

/** A handshake server over HTTP with these CORS rules. */
async function startLegacy({ allow, expose, session }) {
  const requests = [];
  const answer = handshakeServer({
    "tools/list": () => ({ tools: [{ name: "echo", inputSchema: { type: "object" } }] }),
    "tools/call": ({ arguments: { message } }) => ({ content: [{ type: "text", text: message }] }),
  });
  const server = await listen(async (request, response) => {
    const wanted = request.headers["access-control-request-headers"] ?? "";
    requests.push(`${request.method} ${wanted}`);
    if (allow !== undefined) response.setHeader("access-control-allow-origin", "*");
    if (expose !== undefined) response.setHeader("access-control-expose-headers", expose);
    if (request.method === "OPTIONS") {
      if (allow !== undefined) response.setHeader("access-control-allow-headers", allow === "*" ? wanted : allow);
      return response.writeHead(204).end();
    }
    if (request.method !== "POST") return response.writeHead(405).end();
    const message = await json(request);
    const fail = (code, text) => {
      const error = { jsonrpc: "2.0", id: message.id ?? null, error: { code, message: text } };
      response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify(error));
    };
    if (message.method === "server/discover") return fail(-32000, "Bad Request: Server not initialized");
    if (message.method === "initialize" && session !== undefined) response.setHeader("mcp-session-id", session);
    else if (request.headers["mcp-session-id"] !== session) return fail(-32000, "Bad Request: Session ID required");
    const reply = await answer(message);
    if (reply === undefined) return response.writeHead(202).end();
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(reply));
  });
  return { ...server, requests };
}
