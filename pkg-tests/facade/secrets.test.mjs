// Keys and tokens, planted wherever a caller can put one, against servers that repeat all they get, send elsewhere, break
// off and cannot be reached: none is in an error, an event, a snapshot, a store, a span, the console, or a request to
// another origin.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { text } from "node:stream/consumers";
import { inspect } from "node:util";
import * as crablet from "crablet";
import { catalog } from "crablet/models";
import { memoryStore } from "crablet/stores";
import { scriptedModel } from "crablet/test";
import { trace } from "crablet/trace";
import { findsNothing as nothingShows, formsOf, leakIn, plainPlanted, planted, plantedIn } from "../lib/planted.mjs";

const { Agent, mcp } = crablet;

const state = { requests: [], answer: undefined };
let server;
let origin;
let stranger;
before(async () => {
  server = await listen(async (request, response) => {
    state.requests.push(await received(request));
    await state.answer(response, state.requests.at(-1));
  });
  origin = addressOf(server);
  stranger = await listen(async (request, response) => {
    state.strangers.push(await received(request));
    response.end("{}");
  });
});
after(() => {
  for (const one of [server, stranger]) {
    one.close();
    one.closeAllConnections();
  }
});
beforeEach(() => Object.assign(state, { requests: [], strangers: [], answer: undefined }));

async function listen(handle) {
  const listening = createServer(handle);
  await new Promise((resolve) => listening.listen(0, "127.0.0.1", resolve));
  return listening;
}

const addressOf = (listening) => `http://127.0.0.1:${listening.address().port}`;

async function received(request) {
  return { url: request.url, headers: request.headers, body: await text(request) };
}

/** All that a server can repeat of a request: every header and the address, as they are and as others write them. */
function repeated({ url, headers }) {
  const values = Object.values(headers).join(" ");
  const written = plantedIn(`${decodeURIComponent(url)} ${values}`).flatMap(formsOf);
  return `refused ${url} with ${values} or ${written.join(" ")} or ${JSON.stringify({ headers })} here`;
}

async function findsNothing(what, run) {
  await nothingShows(what, run);
  assert.ok(!leakIn(JSON.stringify(state.strangers)), `${what}: sent to another origin`);
}

/** A run with all that watches runs; gives the error it must end with. */
async function watchedRun(agentOptions, see) {
  const store = memoryStore();
  const spans = [];
  const agent = new Agent({
    ...agentOptions,
    retry: { maxAttempts: 2, baseDelayMs: 1, maxDelayMs: 1 },
    onEvent: trace((span) => spans.push(span), { content: true }),
  });
  const session = await agent.open("s", store);
  let failure;
  try {
    for await (const event of session.send("hi")) see("event", event);
  } catch (error) {
    failure = error;
    see("error", error);
  }
  see("spans", spans);
  see("snapshot", session.toJSON());
  see("agent", agent);
  see("state", session.getState());
  await agent.close();
  see("store", await store.read("s"));
  return failure;
}

const headers = { "X-Gateway-Key": planted("gateway"), Authorization: `Bearer ${planted("bearer")}` };
const keys = {
  accessKeyId: plainPlanted("access"),
  secretAccessKey: planted("secret"),
  sessionToken: planted("session"),
};

/** Every way to put a credential into a model at this address. */
const MODELS = {
  "a key": (baseUrl) => crablet.openaiCompatible("m", { baseUrl, apiKey: planted("key") }),
  "a supplier of keys": (baseUrl) => crablet.openaiCompatible("m", { baseUrl, apiKey: async () => planted("key") }),
  "headers and a key": (baseUrl) =>
    crablet.openaiCompatible("m", {
      baseUrl,
      apiKey: planted("key"),
      headers: { "X-Gateway-Key": planted("gateway") },
    }),
  "headers alone": (baseUrl) => crablet.openaiCompatible("m", { baseUrl, headers }),
  Responses: (baseUrl) => crablet.openai("m", { baseUrl, api: "responses", apiKey: planted("key"), headers }),
  Anthropic: (baseUrl) => crablet.anthropic("m", { baseUrl, apiKey: planted("key"), headers }),
  Gemini: (baseUrl) => crablet.gemini("m", { baseUrl, apiKey: planted("key"), headers }),
  Azure: (baseUrl) => crablet.azure("m", { baseUrl, apiKey: planted("key") }),
  "Azure with a token": (baseUrl) => crablet.azure("m", { baseUrl, accessToken: async () => planted("token") }),
  Vertex: (baseUrl) => crablet.vertex("m", { baseUrl, project: "p", accessToken: async () => planted("token") }),
  "Bedrock with a key": (baseUrl) =>
    crablet.bedrock("m", {
      baseUrl,
      region: "us-east-1",
      apiKey: planted("key"),
      headers: { "X-Team": planted("team") },
    }),
  "Bedrock with keys of AWS": (baseUrl) => crablet.bedrock("m", { baseUrl, region: "us-east-1", credentials: keys }),
};

const json = (response, status, body) =>
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
const stream = (response) => response.writeHead(200, { "content-type": "text/event-stream" });

const REDIRECTS = [301, 302, 303, 307, 308];
const redirectTo = (status, to) => (response) => response.writeHead(status, { location: `${to()}/taken` }).end();

/** What servers do, each so that the run must fail. */
const FAILURES = {
  "a refusal that repeats the key": (response, request) =>
    json(response, 401, { error: { message: repeated(request), type: "auth", code: repeated(request) } }),
  "a refusal in words of another kind": (response, request) => json(response, 403, { message: repeated(request) }),
  "a refusal as a page": (response, request) =>
    response.writeHead(502, { "content-type": "text/html" }).end(`<p>${repeated(request)}</p>`),
  "a refusal that is cut in the middle of the key": (response, request) => {
    const [secret] = plantedIn(Object.values(request.headers).join(" "));
    json(response, 401, { error: { message: `${"x".repeat(1990)}${secret}` } });
  },
  "a refusal that the server has shortened": (response, request) => {
    const [secret] = plantedIn(Object.values(request.headers).join(" "));
    json(response, 401, { error: { message: `not ${secret.slice(0, -3)}` } });
  },
  "a refusal in two chunks, parted within the key": async (response, request) => {
    const body = JSON.stringify({ error: { message: repeated(request) } });
    const at = body.indexOf("planted-") + 10;
    response.writeHead(401, { "content-type": "application/json" }).write(body.slice(0, at));
    await new Promise(setImmediate);
    response.end(body.slice(at));
  },
  ...Object.fromEntries(
    REDIRECTS.flatMap((status) => [
      [`a redirect ${status} to another port`, redirectTo(status, () => addressOf(stranger))],
      [
        `a redirect ${status} to another host`,
        redirectTo(status, () => addressOf(stranger).replace("127.0.0.1", "localhost")),
      ],
    ]),
  ),
  "an error in the stream": (response, request) =>
    stream(response).end(
      `event: error\ndata: ${JSON.stringify({ type: "error", error: { message: repeated(request) } })}\n\n`,
    ),
  "a stream of something else": (response, request) => stream(response).end(`data: {${repeated(request)}\n\n`),
  "an answer that is no stream": (response, request) => json(response, 200, { detail: repeated(request) }),
  "a connection that breaks": (response) => {
    stream(response).write("data: {");
    response.destroy();
  },
};

for (const [what, model] of Object.entries(MODELS)) {
  test(`nothing of ${what} shows when a call fails`, async () => {
    for (const [failure, answer] of Object.entries(FAILURES)) {
      Object.assign(state, { requests: [], strangers: [], answer });
      await findsNothing(failure, async (see) => {
        const error = await watchedRun({ model: model(origin) }, see);
        assert.ok(crablet.CrabletError.is(error), `${failure}: the run ended well, or with ${error}`);
      });
      assert.ok(leakIn(JSON.stringify(state.requests)), `${failure}: the server did get the credentials`);
      assert.equal(state.strangers.length, 0, `${failure}: the other origin was not asked at all`);
    }
  });
}

test("what is made with a credential shows none when it is printed, written as JSON or copied", async () => {
  const url = `${origin}/mcp?token=${encodeURIComponent(planted("query"))}`;
  const auth = { grant: "client-credentials", client: { id: "c", secret: planted("client-secret") } };
  const made = {
    ...Object.fromEntries(Object.entries(MODELS).map(([what, model]) => [what, model(origin)])),
    "a described model": catalog.describe(crablet.openai("gpt-5.4", { apiKey: planted("key"), headers })),
    "a server over HTTP": mcp.http(url, { headers, auth }),
    "a server of the shim": mcp.shim({ server: "s", token: planted("token") }),
  };
  for (const [what, value] of Object.entries(made)) {
    await findsNothing(what, async (see) => {
      see("text", [inspect(value, { depth: 9 }), JSON.stringify(value), String(value)]);
      see("members", Object.entries(value));
      see("copy", { ...value });
      try {
        see("clone", structuredClone(value));
      } catch (error) {
        see("error", error);
      }
    });
  }
});

test("keys and headers that cannot be sent are told so without them", async () => {
  const { openaiCompatible, bedrock, azure, anthropic } = crablet;
  const baseUrl = origin;
  for (const [what, odd] of Object.entries({ "a line": "\r\nx-evil: 1", "a zero": "\0x", wide: "€", half: "\ud800" })) {
    const key = planted("key") + odd;
    const given = {
      "a key": () => openaiCompatible("m", { baseUrl, apiKey: key }),
      "a supplier": () => openaiCompatible("m", { baseUrl, apiKey: () => key }),
      "a token": () => azure("m", { baseUrl, accessToken: key }),
      "keys of AWS": () =>
        bedrock("m", { baseUrl, region: "r", credentials: { ...keys, accessKeyId: key, sessionToken: key } }),
      "a header": () => openaiCompatible("m", { baseUrl, headers: { "x-key": key } }),
      "a name of a header": () => openaiCompatible("m", { baseUrl, headers: { [key]: "v" } }),
      "a header in a page": () => anthropic("m", { baseUrl, dangerouslyAllowBrowser: true, headers: { "x-key": key } }),
    };
    for (const [place, model] of Object.entries(given)) {
      await findsNothing(`${place} with ${what}`, async (see) => {
        const run = async () => new Agent({ model: model(), retry: false }).run("hi");
        see(
          "error",
          await run().then(
            () => assert.fail("it was sent"),
            (error) => error,
          ),
        );
      });
    }
    await findsNothing(`a header of an MCP server with ${what}`, async (see) => {
      const server = mcp.http(`${origin}/mcp`, { headers: { authorization: `Bearer ${key}` } });
      see(
        "error",
        await mcp.connect(server).then(
          () => assert.fail("it was sent"),
          (error) => error,
        ),
      );
    });
    assert.equal(state.requests.length, 0, `${what}: nothing was sent`);
  }
});

test("addresses that hold keys, and lead nowhere or are none, are not shown", async () => {
  const user = plainPlanted("user");
  for (const baseUrl of [
    `http://127.0.0.1:9/v1?key=${encodeURIComponent(planted("query"))}`,
    `http://127.0.0.1:9/${plainPlanted("path")}/v1`,
    `http://${user}:${plainPlanted("password")}@127.0.0.1:9/v1`,
    `http://${plainPlanted("name")}:pw@no.such.host.invalid/${plainPlanted("path")}`,
    `https://[${"::"}/v1?key=${planted("query")}`,
    `nothing at all ?key=${planted("query")}`,
    `ftp://127.0.0.1/${plainPlanted("path")}`,
  ]) {
    await findsNothing(baseUrl, async (see) => {
      const seen = (make) => {
        try {
          return { model: make() };
        } catch (error) {
          see("error", error);
          return undefined;
        }
      };
      const options = seen(() => MODELS["a key"](baseUrl));
      if (options) assert.ok(await watchedRun(options, see), `${baseUrl}: the run must fail`);
    });
  }
});

test("a redirect within the origin is followed with the key, and a loop of them ends", async () => {
  const model = () => MODELS["headers and a key"](origin);
  state.answer = (response, { url }) => {
    if (!url.startsWith("/moved")) return response.writeHead(308, { location: `/moved${url}` }).end();
    const chunk = { choices: [{ index: 0, delta: { content: "there" }, finish_reason: "stop" }] };
    return stream(response).end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
  };
  assert.equal((await new Agent({ model: model() }).run("hi")).text, "there");
  const [first, second] = state.requests;
  assert.equal(second.headers["x-gateway-key"], planted("gateway"));
  assert.equal(second.body, first.body);

  state.requests = [];
  state.answer = (response) => response.writeHead(307, { location: "/round" }).end();
  await assert.rejects(new Agent({ model: model(), retry: false }).run("hi"));
  assert.equal(state.requests.length, 6);
});

test("a redirect from https to http is followed with no key", async () => {
  for (const status of REDIRECTS) {
    const asked = [];
    const fetch = async (url) => {
      asked.push(String(url));
      return new Response(null, { status, headers: { location: "http://model.invalid/v1/taken" } });
    };
    for (const options of [{ apiKey: planted("key") }, { headers }]) {
      asked.length = 0;
      const model = crablet.openaiCompatible("m", { baseUrl: "https://model.invalid/v1", fetch, ...options });
      await findsNothing(`${status}`, async (see) => see("error", await watchedRun({ model }, see)));
      assert.ok(asked.length > 0 && asked.every((url) => url.startsWith("https://model.invalid/")), asked.join());
    }
  }
});

/** An MCP server of the handshake era that fails at this method. */
function failingAt(method, fail) {
  return (response, request) => {
    const message = request.body === "" ? {} : JSON.parse(request.body);
    if (message.method === method) return fail(response, request, message);
    if (message.id === undefined) return response.writeHead(202).end();
    const result = {
      initialize: {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "t", version: "1" },
      },
      "tools/list": { tools: [{ name: "look", inputSchema: { type: "object" } }] },
    }[message.method];
    const error = { code: -32601, message: "no such method" };
    return json(response, 200, { jsonrpc: "2.0", id: message.id, ...(result ? { result } : { error }) });
  };
}

const MCP_FAILURES = {
  "a refusal": (response, request) =>
    response
      .writeHead(401, {
        "www-authenticate": `Bearer error="invalid_token", error_description="${request.headers.authorization}"`,
      })
      .end(repeated(request)),
  "a refusal as JSON-RPC": (response, request, { id }) =>
    json(response, 400, {
      jsonrpc: "2.0",
      id,
      error: { code: -32600, message: repeated(request), data: request.headers },
    }),
  "an error of JSON-RPC": (response, request, { id }) =>
    json(response, 200, { jsonrpc: "2.0", id, error: { code: -32600, message: repeated(request) } }),
  "an answer that is none": (response, request) =>
    response.writeHead(200, { "content-type": "application/json" }).end(`{${repeated(request)}`),
  ...Object.fromEntries(
    REDIRECTS.map((status) => [
      `a redirect ${status} to another origin`,
      redirectTo(status, () => addressOf(stranger)),
    ]),
  ),
};

test("nothing of the headers of an MCP server shows when it fails", async () => {
  for (const method of ["initialize", "tools/list", "tools/call"]) {
    for (const [failure, fail] of Object.entries(MCP_FAILURES)) {
      Object.assign(state, { requests: [], strangers: [], answer: failingAt(method, fail) });
      await findsNothing(`${method}: ${failure}`, async (see) => {
        const client = mcp.connect(mcp.http(`${origin}/mcp`, { headers: () => headers }));
        try {
          const connected = await client;
          await connected.tools();
          await connected.callTool("look", {});
          assert.fail(`${method}: ${failure}: nothing failed`);
        } catch (error) {
          if (!crablet.CrabletError.is(error)) throw error;
          see("error", error);
        }
        await (await client.catch(() => undefined))?.close();

        const model = scriptedModel([[{ type: "tool-call", toolName: "s__look", input: {} }], "done", "done"]);
        await watchedRun({ model, mcpServers: { s: mcp.http(`${origin}/mcp`, { headers }) } }, see);
      });
      assert.ok(leakIn(JSON.stringify(state.requests)));
    }
  }
});

test("an address of an MCP server that holds a token is not shown", async () => {
  for (const url of [
    `http://127.0.0.1:9/mcp?token=${encodeURIComponent(planted("query"))}`,
    `http://${plainPlanted("user")}:${plainPlanted("password")}@127.0.0.1:9/mcp`,
    `nothing at all ?key=${planted("query")}`,
    `ws://127.0.0.1:9/${plainPlanted("path")}`,
  ]) {
    await findsNothing(url, async (see) => {
      try {
        await mcp.connect(mcp.http(url));
        assert.fail("it connected");
      } catch (error) {
        if (!crablet.CrabletError.is(error)) throw error;
        see("error", error);
      }
    });
  }
});

test("a token in the address of an MCP server does not show when the server repeats it", async () => {
  const token = planted("query");
  for (const method of ["initialize", "tools/list", "tools/call"]) {
    for (const [failure, fail] of Object.entries(MCP_FAILURES)) {
      Object.assign(state, { requests: [], strangers: [], answer: failingAt(method, fail) });
      await findsNothing(`${method}: ${failure}`, async (see) => {
        const server = mcp.http(`${origin}/mcp?v=1&token=${encodeURIComponent(token)}`);
        const model = scriptedModel([[{ type: "tool-call", toolName: "s__look", input: {} }], "done", "done"]);
        await watchedRun({ model, mcpServers: { s: server } }, see);
      });
      assert.ok(leakIn(JSON.stringify(state.requests)));
    }
  }
});

test("the secret of a client and what it asks tokens with go to no other origin, and show nowhere", async () => {
  const secret = planted("client-secret");
  const token = (response, request) => {
    const failure = state.isRefusing
      ? json(response, 400, { error: "invalid_client", error_description: `${"x".repeat(180)}${request.body}` })
      : response.writeHead(308, { location: `${addressOf(stranger)}/token` }).end();
    return failure;
  };
  state.answer = (response, request) => {
    switch (request.url) {
      case "/.well-known/oauth-protected-resource/mcp":
        return json(response, 200, { resource: `${origin}/mcp`, authorization_servers: [origin] });
      case "/.well-known/oauth-authorization-server":
        return json(response, 200, {
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
          grant_types_supported: ["client_credentials"],
          token_endpoint_auth_methods_supported: ["client_secret_post"],
        });
      case "/token":
        return token(response, request);
      case "/mcp": {
        const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`;
        return response.writeHead(401, { "www-authenticate": `Bearer resource_metadata="${metadata}"` }).end();
      }
      default:
        return response.writeHead(404).end();
    }
  };
  for (const isRefusing of [true, false]) {
    Object.assign(state, { requests: [], strangers: [], isRefusing });
    await findsNothing(isRefusing ? "a refusal" : "a redirect", async (see) => {
      const auth = { grant: "client-credentials", client: { id: "c", secret } };
      await assert.rejects(
        mcp.connect(mcp.http(`${origin}/mcp`, { auth, onEvent: (event) => see("event", event) })),
        (error) => {
          see("error", error);
          return crablet.CrabletError.is(error);
        },
      );
    });
    assert.ok(
      state.requests.some(({ body }) => new URLSearchParams(body).get("client_secret") === secret),
      "the token endpoint got the secret",
    );
    assert.equal(state.strangers.length, 0);
  }
});
