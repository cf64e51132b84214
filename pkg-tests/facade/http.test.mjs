// A model over HTTP: what is sent, what the server sees when the caller leaves, and what the caller sees when it fails.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { text } from "node:stream/consumers";
import { Agent, anthropic, CrabletError, openaiCompatible } from "crablet";
import { scriptedFetch } from "crablet/test";
import { collect } from "./support.mjs";

const delta = (content) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
const END = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`;

/** A server whose answer is set by each test. */
const state = { requests: [], closed: 0, answer: undefined };
let server;
let baseUrl;
before(async () => {
  server = createServer(async (request, response) => {
    state.requests.push({ url: request.url, headers: request.headers, body: await text(request) });
    response.on("close", () => {
      if (!response.writableFinished) state.closed += 1;
    });
    await state.answer(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  baseUrl = `http://127.0.0.1:${server.address().port}/v1`;
});
after(() => {
  server.close();
  server.closeAllConnections();
});

function agentWith(answer, options = {}, agentOptions = {}) {
  Object.assign(state, { requests: [], closed: 0, answer });
  return new Agent({ model: openaiCompatible("m", { baseUrl, ...options }), retry: false, ...agentOptions });
}

async function streamed(response, ...chunks) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const chunk of chunks) {
    response.write(chunk);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Waits until the server has seen a connection close. */
async function closedConnection() {
  for (let waited = 0; state.closed === 0; waited += 1) {
    assert.ok(waited < 500, "the server saw no close");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test("an answer streams in, cut in the middle of characters", async () => {
  const bytes = Buffer.from(delta("schön 🦀"));
  const agent = agentWith(async (response) => {
    await streamed(response, ...Array.from(bytes, (byte) => Buffer.from([byte])));
    response.end(END);
  });
  assert.equal((await agent.run("hi")).text, "schön 🦀");
});

test("the key is asked for at each request and is in no event", async () => {
  let asked = 0;
  const agent = agentWith(
    (response) => {
      response.writeHead(401, { "content-type": "application/json" });
      response.end(
        '{"error":{"message":"wrong key secret-1","type":"invalid_request_error","code":"invalid_api_key"}}',
      );
    },
    { apiKey: async () => `secret-${++asked}` },
  );
  const run = agent.stream("hi");
  const events = [];
  await assert.rejects(
    (async () => {
      for await (const event of run) events.push(event);
    })(),
    (error) => CrabletError.is(error) && error.kind === "auth" && error.status === 401 && !error.retryable,
  );
  assert.equal(state.requests[0].headers.authorization, "Bearer secret-1");
  assert.ok(!JSON.stringify(events).includes("secret-1"));
  await assert.rejects(agent.run("again"));
  assert.equal(state.requests[1].headers.authorization, "Bearer secret-2");
});

test("a key that cannot be had is told", async () => {
  const agent = agentWith(() => {}, {
    apiKey: () => {
      throw new Error("the vault is locked");
    },
  });
  await assert.rejects(agent.run("hi"), (error) => error.kind === "auth" && /the vault is locked/.test(error.message));
  assert.equal(state.requests.length, 0);
});

test("aborting in mid-stream closes the connection", async () => {
  const agent = agentWith((response) => streamed(response, delta("a"), delta("b")));
  const run = agent.stream("hi");
  const types = [];
  for await (const event of run) {
    types.push(event.type);
    if (event.type === "text-delta") run.abort();
  }
  assert.deepEqual(types.slice(-2), ["text-end", "run-end"]);
  await closedConnection();
});

test("a request whose answer was read to its end is not aborted afterwards", async () => {
  const signals = [];
  const fetch = (url, init) => {
    signals.push(init.signal);
    return globalThis.fetch(url, init);
  };
  const agent = agentWith(
    async (response) => {
      await streamed(response, delta("all of it"), END);
      response.end();
    },
    { fetch },
  );
  // What belongs to the first request is gone when the second is answered.
  for (let round = 0; round < 2; round += 1) assert.equal((await agent.run("hi")).text, "all of it");
  assert.equal(signals[0].aborted, false);
});

test("leaving the loop closes the connection", async () => {
  const agent = agentWith((response) => streamed(response, delta("a"), delta("b")));
  for await (const event of agent.stream("hi")) if (event.type === "text-delta") break;
  await closedConnection();
});

test("a client that goes away aborts the run behind toResponse", async () => {
  const agent = agentWith((response) => streamed(response, delta("a")));
  const reader = agent.stream("hi").toResponse().body.getReader();
  await reader.read();
  await reader.cancel();
  if (state.requests.length > 0) await closedConnection();
});

for (const [name, answer, kind] of [
  [
    "a stream that ends too early",
    async (response) => {
      await streamed(response, delta("half"));
      response.end();
    },
    "stream-truncated",
  ],
  [
    "a connection that breaks",
    async (response) => {
      await streamed(response, delta("half"));
      response.destroy();
    },
    /^(network|stream-truncated)$/,
  ],
  [
    "status 200 with an error inside",
    (response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end('{"error":{"message":"no capacity","type":"server_error"}}');
    },
    "server",
  ],
  [
    "an overloaded server",
    (response) => {
      response.writeHead(503).end("busy");
    },
    /^(overloaded|server)$/,
  ],
]) {
  test(`${name} is an error of its kind, and the next prompt works`, async () => {
    const agent = agentWith(answer);
    const session = agent.session();
    await assert.rejects(
      session.send("hi").result,
      (error) => CrabletError.is(error) && error.kind.match(kind) !== null,
    );
    assert.equal(session.getState().status, "error");
    state.answer = async (response) => {
      await streamed(response, delta("fine"));
      response.end(END);
    };
    assert.equal((await session.send("again").result).text, "fine");
  });
}

test("a server that is not there is a network error that names it", async () => {
  const agent = new Agent({
    model: openaiCompatible("m", { baseUrl: "http://127.0.0.1:9/v1", apiKey: "secret" }),
    retry: false,
  });
  await assert.rejects(
    agent.run("hi"),
    (error) => error.kind === "network" && /127\.0\.0\.1:9/.test(error.message) && !/secret/.test(error.message),
  );
});

test("a failed attempt is told and tried again", async () => {
  let attempts = 0;
  const agent = agentWith(
    async (response) => {
      attempts += 1;
      if (attempts === 1) return response.writeHead(503).end();
      await streamed(response, delta("there"));
      return response.end(END);
    },
    {},
    { retry: { baseDelayMs: 1 } },
  );
  const events = await collect(agent.stream("hi"));
  const retry = events.find(({ type }) => type === "step-retry");
  assert.equal(retry.attempt, 2);
  assert.equal(events.at(-1).text, "there");
});

test("a fetch of the caller is used, with its own headers and body as bytes or text", async () => {
  const fetch = scriptedFetch([{ chunks: [delta("mine"), END] }]);
  const model = openaiCompatible("m", { baseUrl: "https://models.example/v1/", headers: { "X-Team": "blue" }, fetch });
  assert.equal((await new Agent({ model }).run("hi")).text, "mine");
  const [{ url, method, headers, body }] = fetch.requests;
  assert.equal(url, "https://models.example/v1/chat/completions");
  assert.equal(method, "POST");
  assert.equal(headers.get("x-team"), "blue");
  assert.equal(headers.get("content-type"), "application/json");
  assert.equal(JSON.parse(body).messages.at(-1).content, "hi");
});

test("a page may call Anthropic only when it says so", async () => {
  const header = "anthropic-dangerous-direct-browser-access";
  const headersOf = async (options) => {
    const fetch = scriptedFetch([{ status: 500 }]);
    const agent = new Agent({ model: anthropic("claude", { apiKey: "k", fetch, ...options }), retry: false });
    await assert.rejects(agent.run("hi"));
    return fetch.requests[0].headers;
  };
  assert.equal((await headersOf({})).has(header), false);
  const headers = await headersOf({ dangerouslyAllowBrowser: true });
  assert.equal(headers.get(header), "true");
  assert.equal(headers.get("x-api-key"), "k");
});
