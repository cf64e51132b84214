// OpenAPI documents as tools, against a real server that tells what it was asked.
import assert from "node:assert/strict";
import { test } from "node:test";
import { text } from "node:stream/consumers";
import { Agent, CrabletError } from "crablet";
import { scriptedModel } from "crablet/test";
import { openApiTools } from "crablet/tools";
import { listen } from "../lib/servers.mjs";

const context = () => ({ callId: "call", signal: new AbortController().signal, progress() {} });
const call = (tool, input) => tool.execute(input, context());
const schemaOf = (tool) => tool.schema.jsonSchema;

/** A server that answers with what it was asked. */
async function echo(t) {
  const requests = [];
  const started = await listen(async (request, response) => {
    const body = await text(request);
    requests.push({ method: request.method, url: request.url, headers: request.headers, body });
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ asked: request.url }));
  });
  t.after(() => started.stop());
  return { url: started.url, requests };
}

const petStore = (version = "3.1.0") => ({
  openapi: version,
  info: { title: "Pets", version: "1" },
  servers: [{ url: "https://pets.example.com/v1" }],
  paths: {
    "/pets": {
      get: {
        operationId: "listPets",
        tags: ["pets"],
        summary: "List all pets",
        parameters: [
          { name: "limit", in: "query", description: "How many", schema: { type: "integer", maximum: 100 } },
          { name: "tag", in: "query", schema: { type: "array", items: { type: "string" } } },
          { $ref: "#/components/parameters/Trace" },
          { name: "Authorization", in: "header", schema: { type: "string" } },
          { name: "session", in: "cookie", schema: { type: "string" } },
        ],
      },
      post: {
        operationId: "pets.create!",
        tags: ["pets", "write"],
        requestBody: {
          required: true,
          content: { "application/json": { schema: { $ref: "#/components/schemas/Pet" } } },
        },
      },
    },
    "/pets/{petId}": {
      parameters: [{ name: "petId", in: "path", required: true, schema: { type: "string" } }],
      get: { summary: "One pet" },
      delete: { operationId: "pets_create", deprecated: true },
      put: {
        operationId: "upload",
        requestBody: { required: true, content: { "multipart/form-data": { schema: {} } } },
      },
    },
  },
  components: {
    parameters: { Trace: { name: "X-Trace", in: "header", required: true, schema: { type: "string" } } },
    schemas: {
      Pet: {
        type: "object",
        required: ["id", "name"],
        properties: {
          id: { type: "integer", readOnly: true },
          name: { type: "string", example: "Rex" },
          parent: { $ref: "#/components/schemas/Pet" },
          owner: { $ref: "#/components/schemas/Owner" },
        },
      },
      Owner: { type: "object", properties: { email: { type: "string" } }, xml: { name: "o" } },
    },
  },
});

test("operations become tools, with one input for parameters of all places", async (t) => {
  const api = await echo(t);
  const { tools, skipped } = openApiTools(petStore(), { server: `${api.url}/v1/` });
  assert.deepEqual(Object.keys(tools), ["listPets", "pets_create", "get_pets_petId", "pets_create_2"]);
  assert.deepEqual(skipped, [
    { operation: "upload", reason: "its body is multipart/form-data, and only JSON can be sent" },
  ]);
  assert.deepEqual(schemaOf(tools.listPets), {
    type: "object",
    properties: {
      limit: { type: "integer", maximum: 100, description: "How many" },
      tag: { type: "array", items: { type: "string" } },
      "X-Trace": { type: "string" },
      session: { type: "string" },
    },
    required: ["X-Trace"],
    additionalProperties: false,
  });
  assert.deepEqual(schemaOf(tools.pets_create).properties.body, {
    type: "object",
    required: ["name"],
    properties: {
      name: { type: "string" },
      parent: { description: "another Pet" },
      owner: { type: "object", properties: { email: { type: "string" } } },
    },
  });
  assert.match(tools.pets_create_2.description, /^Deprecated\. DELETE/);

  const output = await call(tools.listPets, { limit: 5, tag: ["a b", "c&d"], "X-Trace": "t1", session: "s;1" });
  assert.equal(output.content, 'HTTP 200, application/json\n\n{"asked":"/v1/pets?limit=5&tag=a%20b&tag=c%26d"}');
  assert.equal(api.requests[0].headers["x-trace"], "t1");
  assert.equal(api.requests[0].headers.cookie, "session=s%3B1");
  await call(tools.get_pets_petId, { petId: "a/b?c" });
  assert.equal(api.requests[1].url, "/v1/pets/a%2Fb%3Fc");
  await call(tools.pets_create, { body: { name: "Rex" } });
  assert.deepEqual([api.requests[2].method, api.requests[2].body], ["POST", '{"name":"Rex"}']);
  assert.equal(api.requests[2].headers["content-type"], "application/json");
});

test("reading runs, changing asks", () => {
  const { tools } = openApiTools(petStore(), { server: "https://a.test" });
  assert.deepEqual([tools.listPets.needsApproval, tools.listPets.repeatable], [false, true]);
  assert.deepEqual([tools.pets_create.needsApproval, tools.pets_create.repeatable], [true, false]);
  const trusting = openApiTools(petStore(), {
    server: "https://a.test",
    needsApproval: ({ method }) => method === "DELETE",
  });
  assert.equal(trusting.tools.pets_create.needsApproval, false);
  assert.equal(trusting.tools.pets_create_2.needsApproval, true);
});

test("what authorises a request is seen by the server alone", async (t) => {
  const api = await echo(t);
  const asked = [];
  const authorize = (operation) => {
    asked.push(operation.id);
    return { headers: { authorization: "Bearer s3cret" }, query: { key: "k3y" } };
  };
  const { tools } = openApiTools(petStore(), { server: api.url, authorize });
  const model = scriptedModel([[{ type: "tool-call", toolName: "get_pets_petId", input: { petId: "1" } }], "ok"]);
  const events = [];
  for await (const event of new Agent({ model, tools }).stream("go")) events.push(event);
  assert.deepEqual(asked, ["get/pets/{petId}"]);
  assert.equal(api.requests[0].headers.authorization, "Bearer s3cret");
  assert.equal(api.requests[0].url, "/pets/1?key=k3y");
  const shown = JSON.stringify([
    events.map((event) => ({ ...event, output: undefined, content: undefined })),
    model.requests[0],
  ]);
  assert.ok(!shown.includes("s3cret") && !shown.includes("k3y"));
});

test("a redirect never carries what authorises to another origin", async (t) => {
  const other = await echo(t);
  const api = await listen((_, response) => response.writeHead(307, { location: `${other.url}/stolen` }).end());
  t.after(() => api.stop());
  const authorize = () => ({ headers: { "x-key": "s3cret" } });
  const closed = openApiTools(petStore(), { server: api.url, authorize });
  await assert.rejects(call(closed.tools.get_pets_petId, { petId: "1" }), /requests to that are not allowed/);
  const open = openApiTools(petStore(), { server: api.url, origins: [other.url], authorize });
  await call(open.tools.get_pets_petId, { petId: "1" });
  assert.equal(other.requests[0].headers["x-key"], undefined);
  await assert.rejects(call(open.tools.pets_create, { body: { name: "x" } }), /only GET follows redirects/);
});

test("no value leads to another address or another header", async (t) => {
  const api = await echo(t);
  const { tools } = openApiTools(petStore(), { server: `${api.url}/v1` });
  for (const petId of ["..", ".", ""]) {
    await assert.rejects(call(tools.get_pets_petId, { petId }), /another address|is empty/, petId);
  }
  await call(tools.get_pets_petId, { petId: "../../admin" });
  await call(tools.get_pets_petId, { petId: "%2e%2e" });
  assert.deepEqual(
    api.requests.map(({ url }) => url),
    ["/v1/pets/..%2F..%2Fadmin", "/v1/pets/%252e%252e"],
  );
  await assert.rejects(call(tools.listPets, { "X-Trace": "a\r\nx-evil: 1" }), /X-Trace goes into a header/);
});

test("a document does not decide where requests go", () => {
  const document = petStore();
  const isInvalid = (error) => CrabletError.is(error) && error.kind === "invalid-input";
  assert.throws(() => openApiTools(document, {}), isInvalid);
  assert.throws(() => openApiTools(document, { server: "ftp://x" }), isInvalid);
  const { tools, skipped } = openApiTools(document, { origins: ["https://other.example.com"] });
  assert.deepEqual(Object.keys(tools), []);
  assert.match(skipped[0].reason, /requests to its server https:\/\/pets\.example\.com are not allowed/);
  assert.equal(Object.keys(openApiTools(document, { origins: ["https://*.example.com"] }).tools).length, 4);
  document.servers = [{ url: "/api/{version}", variables: { version: { default: "v2" } } }];
  assert.match(openApiTools(document, { origins: ["https://a.test"] }).skipped[0].reason, /no whole address/);
  const options = { origins: ["https://a.test"], documentUrl: "https://a.test/openapi.json" };
  assert.equal(Object.keys(openApiTools(document, options).tools).length, 4);
});

test("filters and prefixes", () => {
  const names = (options) => Object.keys(openApiTools(petStore(), { server: "https://a.test", ...options }).tools);
  assert.deepEqual(names({ tags: ["write"] }), ["pets_create"]);
  assert.deepEqual(names({ operations: ["listPets"], prefix: "pets_" }), ["pets_listPets"]);
  assert.deepEqual(names({ filter: ({ deprecated, method }) => !deprecated && method !== "POST" }), [
    "listPets",
    "get_pets_petId",
  ]);
});

test("3.0 says some things in other words", () => {
  const document = petStore("3.0.3");
  document.components.schemas.Pet.properties.name = { type: "string", nullable: true, enum: ["a"] };
  document.components.schemas.Pet.properties.age = { type: "number", minimum: 0, exclusiveMinimum: true };
  const { properties } = schemaOf(openApiTools(document, { server: "https://a.test" }).tools.pets_create).properties
    .body;
  assert.deepEqual(properties.name, { type: ["string", "null"], enum: ["a", null] });
  assert.deepEqual(properties.age, { type: "number", exclusiveMinimum: 0 });
});

test("documents that are not what they should be", () => {
  for (const [document, words] of [
    ["text", /parse the JSON or YAML/],
    [{ swagger: "2.0" }, /"2\.0", and only 3\.0 and 3\.1/],
    [{ openapi: "4.0.0" }, /only 3\.0 and 3\.1/],
    [null, /is an object/],
  ]) {
    assert.throws(() => openApiTools(document, { server: "https://a.test" }), words);
  }
  const odd = {
    openapi: "3.1.0",
    paths: { "/a": 5, x: {}, "/b": { get: "no", post: { parameters: [1, null, {}] } }, "/c": { $ref: "other.yaml" } },
  };
  const { tools, skipped } = openApiTools(odd, { server: "https://a.test" });
  assert.deepEqual(Object.keys(tools), ["post_b"]);
  assert.match(skipped[0].reason, /other\.yaml leads out of the document/);
  assert.deepEqual(openApiTools({ openapi: "3.1.0" }, { server: "https://a.test" }), { tools: {}, skipped: [] });
});

test("references in circles, to nowhere, and bombs", () => {
  const withSchema = (schema, schemas) => ({
    openapi: "3.1.0",
    paths: { "/a": { post: { operationId: "a", requestBody: { content: { "application/json": { schema } } } } } },
    components: { schemas },
  });
  const reason = (document) => openApiTools(document, { server: "https://a.test" }).skipped[0]?.reason;
  assert.match(reason(withSchema({ $ref: "#/components/schemas/None" }, {})), /leads to nothing/);
  assert.match(reason(withSchema({ $ref: "#/__proto__/constructor" }, {})), /leads to nothing/);
  const bomb = Object.fromEntries(
    Array.from({ length: 20 }, (_, level) => [
      `L${level}`,
      {
        type: "object",
        properties: {
          a: { $ref: `#/components/schemas/L${level + 1}` },
          b: { $ref: `#/components/schemas/L${level + 1}` },
        },
      },
    ]),
  );
  assert.match(reason(withSchema({ $ref: "#/components/schemas/L0" }, { ...bomb, L20: {} })), /too large/);
  const circle = { A: { $ref: "#/components/schemas/B" }, B: { $ref: "#/components/schemas/A" } };
  assert.deepEqual(
    schemaOf(openApiTools(withSchema({ $ref: "#/components/schemas/A" }, circle), { server: "https://a.test" }).tools.a)
      .properties.body,
    { description: "another A" },
  );
});

test("every style of parameter", async (t) => {
  const api = await echo(t);
  const object = { R: 100, G: 200 };
  const cases = [
    ["query", { style: "form", explode: true }, [1, 2], "?p=1&p=2"],
    ["query", { style: "form", explode: false }, [1, 2], "?p=1,2"],
    ["query", { style: "spaceDelimited", explode: false }, [1, 2], "?p=1%202"],
    ["query", { style: "pipeDelimited", explode: false }, [1, 2], "?p=1%7C2"],
    ["query", { style: "form", explode: true }, object, "?R=100&G=200"],
    ["query", { style: "form", explode: false }, object, "?p=R,100,G,200"],
    ["query", { style: "deepObject", explode: true }, object, "?p[R]=100&p[G]=200"],
    ["query", { allowReserved: true }, "a/b:c&d", "?p=a/b:c%26d"],
    ["query", { content: { "application/json": { schema: {} } } }, { a: 1 }, "?p=%7B%22a%22%3A1%7D"],
    ["path", {}, [3, 4], "/3,4"],
    ["path", { explode: true }, object, "/R=100,G=200"],
    ["path", { style: "label" }, [3, 4], "/.3,4"],
    ["path", { style: "label", explode: true }, [3, 4], "/.3.4"],
    ["path", { style: "matrix" }, 5, "/;p=5"],
    ["path", { style: "matrix", explode: true }, [3, 4], "/;p=3;p=4"],
    ["path", { style: "matrix", explode: true }, object, "/;R=100;G=200"],
  ];
  for (const [place, style, value, wanted] of cases) {
    const path = place === "path" ? "/{p}" : "/";
    const parameters = [{ name: "p", in: place, required: true, schema: {}, ...style }];
    const document = { openapi: "3.1.0", paths: { [path]: { get: { operationId: "get", parameters } } } };
    await call(openApiTools(document, { server: api.url }).tools.get, { p: value });
    assert.equal(api.requests.at(-1).url.replace(/^\/(?=\?)/, ""), wanted, JSON.stringify([place, style]));
  }
});

test("a large answer is cut, and a failed one is a failed result", async (t) => {
  const api = await listen((_, response) =>
    response.writeHead(500, { "content-type": "text/plain" }).end("x".repeat(1_000)),
  );
  t.after(() => api.stop());
  const { tools } = openApiTools(petStore(), { server: api.url, maxBytes: 10 });
  const output = await call(tools.get_pets_petId, { petId: "1" });
  assert.equal(output.isError, true);
  assert.equal(output.content, "HTTP 500, text/plain\n\nxxxxxxxxxx\n[cut after 10 bytes]");
});
