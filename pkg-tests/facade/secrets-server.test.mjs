// What callers of an MCP server over HTTP send to be let in, planted wherever a request has a place, with tools that fail and
// requests that are wrong in every way: none of it is in an answer, on the console, or in what a tool is told.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { httpHandler, McpServer, nodeListener, serverTool } from "crablet/server";
import { findsNothing, leakIn, planted } from "../lib/planted.mjs";

const CREDENTIALS = {
  authorization: `Bearer ${planted("bearer")}`,
  cookie: `session=${planted("cookie")}`,
  "x-api-key": planted("header"),
};
const QUERY = `?token=${encodeURIComponent(planted("query"))}`;
const STATELESS = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** Requests of both eras, good ones and such as are refused at each place where one can be. */
const REQUESTS = {
  "a good call": call({}),
  "a call that fails": call({ name: "fails" }),
  "a call that throws what is no error": call({ name: "throws" }),
  "a call with wrong arguments": call({ arguments: 7 }),
  "a call of no tool": call({ name: "none" }),
  "no method": post({ jsonrpc: "2.0", id: 1, method: "none", params: { _meta: STATELESS } }),
  "a handshake": post({
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } },
  }),
  "no JSON": { method: "POST", body: "{" },
  "a batch": { method: "POST", body: "[]" },
  "another type": { ...call({}), headers: { "content-type": "text/plain" } },
  "nothing accepted": { ...call({}), headers: { accept: "image/png" } },
  "a session that there is not": { ...call({}), headers: { "mcp-session-id": planted("session") } },
  "a version that there is not": { ...call({}), headers: { "mcp-protocol-version": "2099-01-01" } },
  "an event that there is not": { method: "GET", headers: { "last-event-id": planted("event") } },
  "no host of the server's": { ...call({}), headers: { host: "stranger.example" } },
  "no origin of the server's": { ...call({}), headers: { origin: "https://stranger.example" } },
  "a method of HTTP that there is not": { method: "PUT", body: "{}" },
  "an end of no session": { method: "DELETE", headers: { "mcp-session-id": planted("session") } },
};

function post(message) {
  return { method: "POST", body: JSON.stringify(message) };
}

function call(params) {
  return post({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "look", arguments: {}, _meta: STATELESS, ...params },
  });
}

/** A server whose tools tell all that they are told. */
function serverThatTells(see) {
  const told = (execute) =>
    serverTool({
      description: "Looks",
      input: { type: "object" },
      execute: (input, context) => {
        const { caller, ...rest } = context;
        see("what a tool is told", [input, rest]);
        return execute(caller);
      },
    });
  return new McpServer({
    name: "s",
    version: "1",
    tools: {
      look: told((caller) => `fine, ${caller?.id ?? "nobody"}`),
      fails: told(() => {
        throw new Error("it does not work");
      }),
      throws: told(() => {
        throw { odd: true };
      }),
    },
  });
}

const authorize = ({ headers }) => {
  if (headers.get("authorization") === null) return new Response(null, { status: 401 });
  return { id: "somebody" };
};

const requestOf = (url, { method, body, headers }) =>
  new Request(url + QUERY, {
    method,
    ...(body !== undefined && { body }),
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...CREDENTIALS,
      ...headers,
    },
  });

async function seeAnswer(response, see) {
  const reader = response.body?.getReader();
  const text = [];
  // A stream of a session has no end of its own.
  const isEndless = response.status === 200 && response.headers.get("content-type")?.includes("event-stream");
  for (let pieces = 0; reader !== undefined && (!isEndless || pieces < 1); pieces += 1) {
    const { done, value } = await reader.read();
    if (done) break;
    text.push(new TextDecoder().decode(value));
  }
  await reader?.cancel();
  see("answer", [response.status, ...response.headers, ...text]);
}

for (const [name, options] of [
  ["open to all", {}],
  ["with callers", { authorize }],
  ["without sessions", { authorize, sessions: false }],
]) {
  test(`nothing of what callers are let in with shows in a handler that is ${name}`, async () => {
    for (const [what, request] of Object.entries(REQUESTS)) {
      await findsNothing(what, async (see) => {
        const handler = httpHandler(serverThatTells(see), options);
        await seeAnswer(await handler(requestOf("http://localhost/mcp", request)), see);
        handler.close();
      });
    }
  });

  test(`nothing of it shows behind Node's server in one that is ${name}`, async () => {
    for (const [what, request] of Object.entries(REQUESTS)) {
      await findsNothing(what, async (see) => {
        const handler = httpHandler(serverThatTells(see), options);
        const server = createServer(nodeListener(handler));
        await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
        try {
          await seeAnswer(await fetch(requestOf(`http://127.0.0.1:${server.address().port}/mcp`, request)), see);
        } finally {
          handler.close();
          server.close();
          server.closeAllConnections();
        }
      });
    }
  });
}

test("a leak would be found", async () => {
  const leaking = httpHandler(
    serverThatTells(() => {}),
    {
      authorize: ({ headers }) => new Response(`not with ${headers.get("cookie")}`, { status: 403 }),
    },
  );
  await assert.rejects(
    findsNothing("a leak", async (see) =>
      seeAnswer(await leaking(requestOf("http://localhost/mcp", REQUESTS["a good call"])), see),
    ),
    /in the answer: .*planted-cookie/s,
  );
  leaking.close();
  assert.ok(leakIn(JSON.stringify(CREDENTIALS)));
});
