// Where the requests of each provider go and what authorizes them, as a real server sees them.
import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { crc32 } from "node:zlib";
import { buffer } from "node:stream/consumers";
import { Agent, azure, bedrock, CrabletError, gemini, openai, vertex } from "crablet";

const state = { requests: [], answer: undefined };
let server;
let origin;
before(async () => {
  server = createServer(async (request, response) => {
    const { method, url, headers } = request;
    state.requests.push({ method, url, headers, body: await buffer(request) });
    state.answer(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${server.address().port}`;
});
after(() => {
  server.close();
  server.closeAllConnections();
});

const SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const KEYS = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: SECRET, sessionToken: "temporary-session-token" };

const chatEvents = [
  { choices: [{ index: 0, delta: { content: "fine" } }] },
  { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
];
const message = { type: "message", id: "m", role: "assistant", content: [{ type: "output_text", text: "fine" }] };
const responsesEvents = [
  { type: "response.created", response: { id: "r", status: "in_progress" } },
  { type: "response.output_item.added", output_index: 0, item: { ...message, content: [] } },
  { type: "response.output_text.delta", output_index: 0, content_index: 0, item_id: "m", delta: "fine" },
  { type: "response.output_item.done", output_index: 0, item: message },
  { type: "response.completed", response: { id: "r", status: "completed", output: [message] } },
];
const geminiEvents = [
  { candidates: [{ index: 0, content: { role: "model", parts: [{ text: "fine" }] }, finishReason: "STOP" }] },
];
const bedrockEvents = [
  ["messageStart", { role: "assistant" }],
  ["contentBlockDelta", { contentBlockIndex: 0, delta: { text: "fine" } }],
  ["contentBlockStop", { contentBlockIndex: 0 }],
  ["messageStop", { stopReason: "end_turn" }],
  ["metadata", { usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }],
];

const serverSentEvents = (events) => (response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
};
const eventStream = (events) => (response) => {
  response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
  response.end(Buffer.concat(events.map(([type, payload]) => frame(type, payload))));
};

/** One message of the binary event stream of AWS: lengths, checksum, headers, payload, checksum. */
function frame(type, payload) {
  const header = (name, value) =>
    Buffer.concat([
      Buffer.from([name.length]),
      Buffer.from(name),
      Buffer.from([7, 0, value.length]),
      Buffer.from(value),
    ]);
  const headers = Buffer.concat([
    header(":message-type", "event"),
    header(":event-type", type),
    header(":content-type", "application/json"),
  ]);
  const body = Buffer.from(JSON.stringify(payload));
  const lengths = Buffer.alloc(8);
  lengths.writeUInt32BE(16 + headers.length + body.length, 0);
  lengths.writeUInt32BE(headers.length, 4);
  const checked = (bytes) => {
    const sum = Buffer.alloc(4);
    sum.writeUInt32BE(crc32(bytes));
    return Buffer.concat([bytes, sum]);
  };
  return checked(Buffer.concat([checked(lengths), headers, body]));
}

async function asked(model, answer) {
  Object.assign(state, { requests: [], answer });
  assert.equal((await new Agent({ model, retry: false }).run("hi")).text, "fine");
  assert.equal(state.requests.length, 1);
  return state.requests[0];
}

for (const [name, modelAt, answer, url, header, value] of [
  [
    "OpenAI Responses",
    () => openai("m", { api: "responses", baseUrl: `${origin}/v1`, apiKey: "key-1" }),
    serverSentEvents(responsesEvents),
    "/v1/responses",
    "authorization",
    "Bearer key-1",
  ],
  [
    "Azure, over Responses",
    () => azure("deployment", { baseUrl: `${origin}/openai/v1/`, apiKey: async () => "key-1" }),
    serverSentEvents(responsesEvents),
    "/openai/v1/responses",
    "api-key",
    "key-1",
  ],
  [
    "Azure, over Chat Completions",
    () => azure("deployment", { api: "chat", baseUrl: `${origin}/openai/v1`, apiKey: "key-1" }),
    serverSentEvents(chatEvents),
    "/openai/v1/chat/completions",
    "api-key",
    "key-1",
  ],
  [
    "Azure, with a token of Entra",
    () => azure("deployment", { baseUrl: `${origin}/openai/v1`, accessToken: async () => "token-1" }),
    serverSentEvents(responsesEvents),
    "/openai/v1/responses",
    "authorization",
    "Bearer token-1",
  ],
  [
    "Gemini",
    () => gemini("g", { baseUrl: `${origin}/v1beta`, apiKey: "key-1" }),
    serverSentEvents(geminiEvents),
    "/v1beta/models/g:streamGenerateContent?alt=sse",
    "x-goog-api-key",
    "key-1",
  ],
  [
    "Vertex",
    () => vertex("g", { project: "p-1", location: "europe-west4", baseUrl: `${origin}/v1`, accessToken: () => "t-1" }),
    serverSentEvents(geminiEvents),
    "/v1/projects/p-1/locations/europe-west4/publishers/google/models/g:streamGenerateContent?alt=sse",
    "authorization",
    "Bearer t-1",
  ],
  [
    "Bedrock, with an API key",
    () => bedrock("anthropic.claude:0", { region: "us-east-1", baseUrl: origin, apiKey: "key-1" }),
    eventStream(bedrockEvents),
    "/model/anthropic.claude%3A0/converse-stream",
    "authorization",
    "Bearer key-1",
  ],
]) {
  test(`${name}: the request reaches its path with its header`, async () => {
    const request = await asked(modelAt(), answer);
    assert.equal(request.method, "POST");
    assert.equal(request.url, url);
    assert.equal(request.headers[header], value);
  });
}

test("without an address of their own, requests go to the provider's", async () => {
  const addressOf = async (make) => {
    let seen;
    const fetch = async (address) => {
      seen = address;
      throw new Error("not today");
    };
    await assert.rejects(new Agent({ model: make(fetch), retry: false }).run("hi"));
    return seen;
  };
  assert.equal(
    await addressOf((fetch) => azure("d", { resource: "name", apiKey: "k", fetch })),
    "https://name.openai.azure.com/openai/v1/responses",
  );
  const method = "publishers/google/models/g:streamGenerateContent?alt=sse";
  assert.equal(
    await addressOf((fetch) => vertex("g", { project: "p", accessToken: "t", fetch })),
    `https://aiplatform.googleapis.com/v1/projects/p/locations/global/${method}`,
  );
  assert.equal(
    await addressOf((fetch) => vertex("g", { project: "p", location: "us-east1", accessToken: "t", fetch })),
    `https://us-east1-aiplatform.googleapis.com/v1/projects/p/locations/us-east1/${method}`,
  );
  assert.equal(
    await addressOf((fetch) => bedrock("m", { region: "eu-west-1", credentials: KEYS, fetch })),
    "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse-stream",
  );
});

test("Bedrock requests carry a valid Signature Version 4 of the supplier's keys, and never the secret", async () => {
  let supplied = 0;
  const credentials = async () => {
    supplied += 1;
    return KEYS;
  };
  const model = bedrock("anthropic.claude:0", { region: "eu-central-1", baseUrl: origin, credentials });
  const request = await asked(model, eventStream(bedrockEvents));
  assert.equal(supplied, 1);
  assert.equal(request.headers["x-amz-security-token"], KEYS.sessionToken);
  assert.equal(request.headers.authorization, signatureOf(request, "eu-central-1"));
  assert.ok(!JSON.stringify([request.headers, request.body.toString()]).includes(SECRET));
});

/** The authorization header that the request should have, by the documented algorithm. */
function signatureOf({ method, url, headers, body }, region) {
  const sha256 = (data) => createHash("sha256").update(data).digest("hex");
  const mac = (key, data) => createHmac("sha256", key).update(data).digest();
  const names = /SignedHeaders=([^,]+)/.exec(headers.authorization)[1].split(";");
  assert.ok(names.includes("host") && names.includes("x-amz-date") && names.includes("x-amz-security-token"));
  const path = url.split("/").map(encodeURIComponent).join("/");
  const listed = names.map((name) => `${name}:${headers[name]}\n`).join("");
  const canonical = [method, path, "", listed, names.join(";"), sha256(body)].join("\n");
  const time = headers["x-amz-date"];
  const parts = [time.slice(0, 8), region, "bedrock", "aws4_request"];
  const toSign = ["AWS4-HMAC-SHA256", time, parts.join("/"), sha256(canonical)].join("\n");
  const signature = mac(parts.reduce(mac, `AWS4${SECRET}`), toSign).toString("hex");
  const credential = `${KEYS.accessKeyId}/${parts.join("/")}`;
  return `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${names.join(";")}, Signature=${signature}`;
}

test("a server that repeats the credentials does not get them into errors and events", async () => {
  const token = "entra-token-0123456789";
  for (const [secrets, model] of [
    [[SECRET, KEYS.sessionToken], bedrock("m", { region: "us-east-1", baseUrl: origin, credentials: KEYS })],
    [[token], vertex("m", { project: "p", baseUrl: origin, accessToken: async () => token })],
    [[token], azure("m", { baseUrl: origin, accessToken: token })],
  ]) {
    state.answer = (response) => {
      response.writeHead(403, { "content-type": "application/json" });
      response.end(JSON.stringify({ message: `not with ${secrets.join(" ")} here` }));
    };
    const events = [];
    const read = async () => {
      for await (const event of new Agent({ model, retry: false }).stream("hi")) events.push(event);
    };
    await assert.rejects(read(), (error) => {
      assert.ok(CrabletError.is(error));
      assert.equal(error.kind, "auth");
      for (const secret of secrets) {
        assert.ok(!`${error.message} ${error.stack} ${JSON.stringify(events)}`.includes(secret), model.provider);
      }
      return true;
    });
  }
});

test("a supplier that fails or gives the wrong thing is an error of kind auth, without what it gave", async () => {
  state.requests = [];
  for (const [credentials, told] of [
    [() => Promise.reject(new Error("the role is gone")), /the role is gone/],
    [() => undefined, /credentials\(\) gave no accessKeyId/],
    [() => ({ accessKeyId: "A", secretAccesKey: SECRET }), /credentials\(\) gave no secretAccessKey/],
    [() => ({ ...KEYS, sessionToken: 7 }), /credentials\(\) gave no sessionToken/],
  ]) {
    const model = bedrock("m", { region: "us-east-1", baseUrl: origin, credentials });
    await assert.rejects(new Agent({ model, retry: false }).run("hi"), (error) => {
      assert.equal(error.kind, "auth");
      assert.match(error.message, told);
      assert.ok(!error.message.includes(SECRET));
      return true;
    });
  }
  assert.equal(state.requests.length, 0);
});

test("what is missing or would change the address is told before anything is sent", () => {
  for (const [make, told] of [
    [() => azure("d", { apiKey: "k" }), /azure\(\) needs a resource/],
    [() => azure("d", { resource: "evil.example/", apiKey: "k" }), /resource/],
    [() => azure("d", { resource: "r", apiKey: "k", accessToken: "t" }), /not both/],
    [() => vertex("g", { accessToken: "t" }), /vertex\(\) needs a project/],
    [() => vertex("g", { project: "p", location: "x/../y" }), /location/],
    [() => bedrock("m", { credentials: KEYS }), /bedrock\(\) needs a region/],
    [() => bedrock("m", { region: "us-east-1", credentials: KEYS, apiKey: "k" }), /not both/],
    [() => bedrock("", { region: "us-east-1" }), /name of a model/],
  ]) {
    assert.throws(make, (error) => error.kind === "invalid-input" && told.test(error.message));
  }
});

test("an address that no request can go to, and a key that is empty, are told before anything is sent", async () => {
  const key = "planted-in-the-address";
  for (const [baseUrl, told] of [
    [`${origin}/v1?key=${key}`, /query/],
    [new URL(`${origin}/v1#${key}`), /fragment/],
    [`http://user:${key}@127.0.0.1/v1`, /password/],
    [`/within/the/page/${key}`, /no address/],
    [`localhost:8080/${key}`, /no address/],
    [`ftp://127.0.0.1/${key}`, /no address/],
    [`https://[::/${key}`, /no address/],
    ["", /no address/],
  ]) {
    for (const make of [openai, gemini, (id, options) => vertex(id, { project: "p", ...options })]) {
      assert.throws(
        () => make("m", { baseUrl }),
        (error) => error.kind === "invalid-input" && told.test(error.message) && !error.message.includes(key),
        String(baseUrl),
      );
    }
  }
  state.requests.length = 0;
  for (const apiKey of ["", " ", () => "", async () => " \n"]) {
    const model = openai("m", { baseUrl: `${origin}/v1`, apiKey });
    await assert.rejects(new Agent({ model }).run("hi"), { kind: "auth", message: /empty/ });
  }
  assert.equal(state.requests.length, 0);
});
