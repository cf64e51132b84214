// The MCP server in JavaScript over HTTP: the exchanges that it shares with the one in Rust, and its life with real clients.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, request as nodeRequest } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { CrabletError, mcp } from "crablet";
import { ask, httpHandler, McpServer, needsInput, nodeListener, serverTool } from "crablet/server";
import { deferred } from "./support.mjs";

const anything = { type: "object" };
const form = { type: "object", properties: { name: { type: "string" } } };

/** The server of the exchanges. */
function fixture(more = {}) {
  const served = (input, execute) => serverTool({ description: "Does something", input, execute });
  return new McpServer({
    name: "fixture",
    version: "1.0.0",
    logging: true,
    tools: {
      echo: served(
        { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
        ({ text }) => text,
      ),
      region: served(
        {
          type: "object",
          properties: {
            region: { type: "string", "x-mcp-header": "Region" },
            count: { type: "integer", "x-mcp-header": "Count" },
          },
        },
        ({ region }) => String(region),
      ),
      tell: served(anything, (_, context) => {
        context.log("info", "half");
        return "done";
      }),
      ask: served(anything, (_, { inputResponses: { who }, requestState }) =>
        who === undefined
          ? needsInput({ who: ask.form("Who are you?", form) }, "kept")
          : `Hello ${who.content.name} ${requestState}`,
      ),
      who: served(anything, (_, { caller }) => caller?.id ?? "nobody"),
      ...more,
    },
  });
}

/** Whether everything expected is there. */
function holds(expected, sent) {
  if (Array.isArray(expected))
    return (
      Array.isArray(sent) && sent.length === expected.length && expected.every((item, at) => holds(item, sent[at]))
    );
  if (typeof expected !== "object" || expected === null) return expected === sent;
  return Object.entries(expected).every(([name, value]) => holds(value, sent?.[name]));
}

/** The events of a stream that ends: the name and the message of each. */
function readEvents(text) {
  const blocks = text.split("\n\n").filter((block) => block !== "");
  return blocks.map((block) => {
    const field = (name) => new RegExp(`^${name}: ?(.*)$`, "m").exec(block)?.[1];
    const data = field("data");
    return { id: field("id"), message: data ? JSON.parse(data) : null };
  });
}

const usual = {
  host: "localhost",
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

/** A request with the usual headers, but for those given; `null` takes one away. */
function posted(body, headers = {}, method = "POST", more = {}) {
  const all = Object.entries({ ...usual, ...headers }).filter(([, value]) => value !== null);
  const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  return new Request("http://localhost/mcp", {
    method,
    headers: all,
    ...(text !== undefined && { body: text }),
    ...more,
  });
}

const rpc = (id, method, params) => ({ jsonrpc: "2.0", id, method, ...(params && { params }) });
const hello = (capabilities = {}) => rpc(1, "initialize", { protocolVersion: "2025-11-25", capabilities });
const call = (id, name, input = {}) => rpc(id, "tools/call", { name, arguments: input });

/** A session of a handler: how its requests are made. */
async function session(handler, capabilities) {
  const opened = await handler(posted(hello(capabilities)));
  const name = opened.headers.get("mcp-session-id");
  assert.equal(opened.status, 200);
  const send = (body, more) => handler(posted(body, { "mcp-session-id": name }, "POST", more));
  const listen = (after) =>
    handler(posted(undefined, { "mcp-session-id": name, ...(after && { "last-event-id": after }) }, "GET"));
  return { name, send, listen };
}

const { exchanges } = JSON.parse(readFileSync(new URL("../fixtures/mcp-server/http.json", import.meta.url), "utf8"));

for (const { name, options, steps } of exchanges) {
  test(`exchange: ${name}`, async () => {
    let caller;
    const authorize = () => (caller === undefined ? undefined : { id: caller });
    const handler = httpHandler(fixture(), { ...options, authorize });
    let opened = "";
    let events = [];
    for (const { method = "POST", headers = {}, body, expect, ...step } of steps) {
      caller = step.caller;
      const filled = Object.entries(headers).map(([header, value]) => {
        const event = /^\$event(\d)$/.exec(value ?? "")?.[1];
        return [header, value === "$session" ? opened : event === undefined ? value : events[Number(event)]];
      });
      const answer = await handler(posted(method === "POST" ? body : undefined, Object.fromEntries(filled), method));
      const text = await answer.text();
      const told = `${JSON.stringify({ method, headers, body })?.slice(0, 500)}\nanswered ${answer.status} ${text}`;
      assert.equal(answer.status, expect.status, told);
      opened = answer.headers.get("mcp-session-id") ?? opened;
      for (const [header, value] of Object.entries(expect.headers ?? {})) {
        const sent = answer.headers.get(header);
        assert.ok(value === "*" ? sent !== null : sent === value, `${header}: ${sent}\n${told}`);
      }
      if (expect.message !== undefined) assert.ok(holds(expect.message, JSON.parse(text)), told);
      if (expect.events !== undefined) {
        const read = readEvents(text);
        if (read[0].id !== undefined) events = read.map(({ id }) => id);
        assert.ok(
          holds(
            expect.events,
            read.map(({ message }) => message),
          ),
          told,
        );
      }
    }
    handler.close();
  });
}

/** A server of Node that is closed at the end of the test. */
async function listening(t, handler) {
  const server = createServer(nodeListener(handler));
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  t.after(() => {
    handler.close?.();
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}/mcp`;
}

for (const era of ["stateless", "handshake"]) {
  test(`a client of crablet calls and is asked over HTTP (${era})`, async (t) => {
    const url = await listening(t, httpHandler(fixture()));
    const elicitation = { form: () => ({ action: "accept", content: { name: "Ada" } }) };
    const client = await mcp.connect(mcp.http(url, { era, elicitation }));
    assert.equal((await client.callTool("echo", { text: "hi" })).content[0].text, "hi");
    assert.equal((await client.callTool("ask", {})).content[0].text, "Hello Ada kept");
    await client.close();
  });
}

test("a question goes on the stream of its call, and the answer comes by another request", async () => {
  const handler = httpHandler(fixture());
  const { send } = await session(handler, { elicitation: {} });
  const answering = await send(call(2, "ask"));
  assert.equal(answering.headers.get("content-type"), "text/event-stream");
  const reader = answering.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("elicitation/create")) text += (await reader.read()).value;
  const question = readEvents(text).at(-1).message;
  const result = { action: "accept", content: { name: "Ada" } };
  assert.equal((await send({ jsonrpc: "2.0", id: question.id, result })).status, 202);
  for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
  assert.equal(readEvents(text).at(-1).message.result.content[0].text, "Hello Ada kept");
});

test("a subscription hears of changes until its client leaves", async () => {
  const server = fixture();
  const handler = httpHandler(server);
  const stop = new AbortController();
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const body = rpc("s", "subscriptions/listen", { _meta, notifications: { toolsListChanged: true } });
  const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen" };
  const answer = await handler(posted(body, headers, "POST", { signal: stop.signal }));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  assert.match((await reader.read()).value, /acknowledged/);
  server.expose({ more: serverTool({ description: "More", input: anything, execute: () => "more" }) });
  const told = readEvents((await reader.read()).value)[0].message;
  assert.equal(told.method, "notifications/tools/list_changed");
  assert.equal(told.params._meta["io.modelcontextprotocol/subscriptionId"], "s");
  handler.close();
  assert.equal((await reader.read()).done, true);
});

test("who leaves a stateless request cancels it, who leaves one of a session does not", async () => {
  const started = deferred();
  const release = deferred();
  const aborted = deferred();
  const slow = serverTool({
    description: "Waits",
    input: anything,
    execute: async (_, { signal, log }) => {
      signal.addEventListener("abort", () => aborted.resolve("aborted"));
      log("info", "begun");
      started.resolve();
      await Promise.race([release.promise, aborted.promise]);
      return "released";
    },
  });
  const handler = httpHandler(fixture({ slow }));
  const { send, listen } = await session(handler);
  const answer = await send(call(2, "slow"));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("begun")) text += (await reader.read()).value;
  const last = readEvents(text).at(-1).id;
  await reader.cancel();
  release.resolve();
  const rest = readEvents(await (await listen(last)).text());
  assert.equal(rest.at(-1).message.result.content[0].text, "released");

  const again = deferred();
  const waits = serverTool({
    description: "Waits",
    input: anything,
    execute: (_, { signal }) => {
      again.resolve();
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          aborted.resolve("aborted");
          reject(signal.reason);
        });
      });
    },
  });
  const stateless = httpHandler(fixture({ waits }));
  const stop = new AbortController();
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const body = rpc(1, "tools/call", { name: "waits", arguments: {}, _meta });
  const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "waits" };
  const waiting = stateless(posted(body, headers, "POST", { signal: stop.signal }));
  await again.promise;
  stop.abort();
  assert.equal(await aborted.promise, "aborted");
  assert.equal((await waiting).status, 202);
});

test("a request that was cancelled gets no answer", async () => {
  const started = deferred();
  const hang = serverTool({
    description: "Hangs",
    input: anything,
    execute: () => {
      started.resolve();
      return new Promise(() => {});
    },
  });
  const handler = httpHandler(fixture({ hang }));
  const { send } = await session(handler);
  const waiting = send(call(2, "hang"));
  await started.promise;
  await send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2 } });
  assert.equal((await waiting).status, 202);
  assert.equal((await send(call(2, "echo", { text: "the id is free" }))).status, 200);
});

test("a body that is too long is not read to its end", async () => {
  let pulled = 0;
  const handler = httpHandler(fixture(), { maxBodyBytes: 10_000 });
  const body = new ReadableStream({
    pull(controller) {
      pulled += 1;
      controller.enqueue(new Uint8Array(1_000));
    },
  });
  const answer = await handler(posted(undefined, {}, "POST", { body, duplex: "half" }));
  assert.equal(answer.status, 413);
  assert.ok(pulled < 20, `${pulled}`);
  assert.equal((await handler(posted("{}", { "content-length": "20000" }))).status, 413);
});

test("what authorize says is the answer, before the body is read, and pages can read it", async () => {
  const handler = httpHandler(fixture(), {
    origins: ["https://app.example"],
    authorize: ({ headers }) =>
      headers.get("authorization") === "Bearer right"
        ? { id: "ada" }
        : new Response(null, { status: 401, headers: { "www-authenticate": 'Bearer resource_metadata="https://a/"' } }),
  });
  const refused = await handler(posted("no JSON", { origin: "https://app.example" }));
  assert.equal(refused.status, 401);
  assert.match(refused.headers.get("www-authenticate"), /resource_metadata/);
  assert.equal(refused.headers.get("access-control-allow-origin"), "https://app.example");
  assert.match(refused.headers.get("access-control-expose-headers"), /WWW-Authenticate/);
  assert.equal((await handler(posted(hello(), { authorization: "Bearer right" }))).status, 200);
  await assert.rejects(
    httpHandler(fixture(), { authorize: () => Promise.reject(new Error("the database is away")) })(posted(hello())),
    /the database is away/,
  );
});

test("limits: sessions in use stay, requests beyond the limit are refused", async () => {
  const handler = httpHandler(fixture(), { maxSessions: 1 });
  const { listen, send } = await session(handler);
  const stream = await listen();
  const refused = await handler(posted(hello()));
  assert.equal(refused.status, 503);
  assert.equal((await send(rpc(2, "ping"))).status, 200);
  await stream.body.cancel();
  assert.equal((await handler(posted(hello()))).status, 200);
  assert.equal((await send(rpc(3, "ping"))).status, 404);
});

test("a session that nobody uses is forgotten", async (t) => {
  t.mock.timers.enable({ apis: ["Date"] });
  const handler = httpHandler(fixture(), { sessionIdleMs: 1_000 });
  const { send } = await session(handler);
  t.mock.timers.tick(999);
  assert.equal((await send(rpc(2, "ping"))).status, 200);
  t.mock.timers.tick(1_000);
  assert.equal((await send(rpc(3, "ping"))).status, 404);
});

test("options that make no sense are refused", () => {
  for (const options of [{ origins: ["*"] }, { origins: ["https://a.example/path"] }, { maxSessions: 0 }])
    assert.throws(
      () => httpHandler(fixture(), options),
      (error) => CrabletError.is(error) && error.kind === "invalid-input",
    );
});

test("Node: a client that goes away half way through ends its call", async (t) => {
  const started = deferred();
  const aborted = deferred();
  const hang = serverTool({
    description: "Hangs",
    input: anything,
    execute: (_, { signal }) => {
      signal.addEventListener("abort", () => aborted.resolve("aborted"));
      started.resolve();
      return new Promise(() => {});
    },
  });
  const url = new URL(await listening(t, httpHandler(fixture({ hang }))));
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const headers = {
    ...usual,
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "hang",
    host: url.host,
  };
  const outgoing = nodeRequest(url, { method: "POST", headers });
  outgoing.on("error", () => {});
  outgoing.end(JSON.stringify(rpc(1, "tools/call", { name: "hang", arguments: {}, _meta })));
  await started.promise;
  outgoing.destroy();
  assert.equal(await aborted.promise, "aborted");
});

test("Node: hostile bytes get an answer or a closed connection, and the server lives", async (t) => {
  const url = new URL(await listening(t, httpHandler(fixture(), { maxBodyBytes: 10_000 })));
  const exchange = (bytes) =>
    new Promise((resolve) => {
      const socket = connect(Number(url.port), url.hostname, () => socket.end(bytes));
      let text = "";
      socket.on("data", (data) => {
        text += data;
      });
      socket.on("error", () => resolve(text));
      socket.on("close", () => resolve(text));
    });
  const head = (line, ...headers) => `${[line, ...headers, "connection: close"].join("\r\n")}\r\n\r\n`;
  const json = ["content-type: application/json", "accept: */*"];
  for (const [bytes, status] of [
    [head("GET /mcp HTTP/1.1", "host: evil.example"), 403],
    [head("GET http://evil.example/mcp HTTP/1.1", "host: evil.example"), 403],
    [head("GET http://localhost/mcp HTTP/1.1", "host: evil.example"), 403],
    [head("GET //evil.example/mcp HTTP/1.1", "host: localhost", "accept: */*"), 405],
    [head("OPTIONS * HTTP/1.1", "host: localhost"), 405],
    [`${head("POST /mcp HTTP/1.1", "host: localhost", ...json, "content-length: 4")}\xff\xfe\xff\xfe`, 400],
    [head("POST /mcp HTTP/1.1", "host: localhost", ...json, "content-length: 99999999"), 413],
    [`${head("POST /mcp HTTP/1.1", "host: localhost", ...json, "content-length: 5")}{`, undefined],
  ]) {
    const answer = await exchange(Buffer.from(bytes, "latin1"));
    const got = /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1];
    if (status !== undefined) assert.equal(Number(got), status, `${bytes}\n${answer}`);
  }
  const alive = await fetch(url, {
    method: "POST",
    headers: { ...usual, host: url.host },
    body: JSON.stringify(hello()),
  });
  assert.equal(alive.status, 200);
});
