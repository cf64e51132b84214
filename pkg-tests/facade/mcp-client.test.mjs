// What a connection to an MCP server offers besides tools.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, mcp } from "crablet";
import { scriptedModel } from "crablet/test";
import { handshakeServer, serveAtPort, statelessServer } from "../lib/mcp-servers.mjs";
import { deferred } from "./support.mjs";

const custom = (request, options) => mcp.connect(mcp.custom({ ...options, request }));
const everything = { tools: {}, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} };

test("resources, templates and prompts are listed over all pages and read", async () => {
  const asked = [];
  const client = await custom(
    handshakeServer(
      {
        "resources/list": ({ cursor } = {}) =>
          cursor === ""
            ? { resources: [{ uri: "f:///b", name: "b" }] }
            : { resources: [{ uri: "f:///a", name: "a", size: 3 }], nextCursor: "" },
        "resources/templates/list": () => ({ resourceTemplates: [{ uriTemplate: "f:///{name}", name: "f" }] }),
        "resources/read": ({ uri }) => ({ contents: [{ uri, text: "A", mimeType: "text/plain" }] }),
        "prompts/list": () => ({ prompts: [{ name: "p", arguments: [{ name: "who", required: true }] }] }),
        "prompts/get": ({ name, arguments: given }) => {
          asked.push(name, given);
          return { messages: [{ role: "user", content: { type: "text", text: "hi" } }] };
        },
        "completion/complete": (params) => {
          asked.push(params.ref, params.argument, params.context);
          return { completion: { values: ["Ada"], total: 1, hasMore: false } };
        },
      },
      { capabilities: everything },
    ),
  );
  assert.deepEqual(
    (await client.resources()).map(({ uri }) => uri),
    ["f:///a", "f:///b"],
  );
  assert.equal((await client.resourceTemplates())[0].uriTemplate, "f:///{name}");
  assert.deepEqual(await client.readResource("f:///a"), [{ uri: "f:///a", text: "A", mimeType: "text/plain" }]);
  assert.equal((await client.prompts())[0].arguments[0].required, true);
  assert.equal((await client.prompt("p", { who: "Ada" })).messages[0].content.text, "hi");
  const ref = { type: "ref/prompt", name: "p" };
  const completion = await client.complete(ref, { name: "who", value: "A" }, { context: { other: "x" } });
  assert.deepEqual(completion.values, ["Ada"]);
  assert.deepEqual(asked, ["p", { who: "Ada" }, ref, { name: "who", value: "A" }, { arguments: { other: "x" } }]);
  assert.equal(client.server.name, "t");
  assert.deepEqual(client.server.capabilities, everything);
  await client.close();
});

test("what the package does not know is kept", async () => {
  const tool = { name: "t", inputSchema: { type: "object" }, icons: [{ src: "data:," }], novel: { a: 1 } };
  const content = [
    { type: "hologram", beam: 7 },
    { type: "resource_link", uri: "f:///a", name: "a", annotations: { priority: 1 } },
  ];
  const client = await custom(
    handshakeServer({
      "tools/list": () => ({ tools: [tool] }),
      "tools/call": () => ({ content, _meta: { x: 1 }, later: 2 }),
    }),
  );
  assert.deepEqual(await client.tools(), [tool]);
  assert.deepEqual(await client.callTool("t"), { content, _meta: { x: 1 }, later: 2, isError: false });
  await client.close();
});

test("errors tell who failed", async () => {
  const client = await custom((message, context) => {
    if (message.method === "a/throw") throw new Error("gone");
    if (message.method === "a/nonsense") return { jsonrpc: "2.0", id: message.id };
    return handshakeServer({ "a/fine": () => ({ ok: 1 }) })(message, context);
  });
  assert.deepEqual(await client.request("a/fine"), { ok: 1 });
  await assert.rejects(client.request("a/none"), { kind: "rpc", code: "-32601" });
  await assert.rejects(client.request("a/throw"), { kind: "connection-closed", message: /gone/ });
  await assert.rejects(client.request("a/nonsense"), { kind: "protocol" });
  const silent = await custom(handshakeServer({ "a/slow": () => new Promise(() => {}) }));
  await assert.rejects(silent.request("a/slow", {}, { timeoutMs: 20 }), { kind: "timeout" });
  await Promise.all([client.close(), silent.close()]);
});

test("a value that does not fit the tool's own schema is an error", async () => {
  const outputSchema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
  let value = { n: 1 };
  const client = await custom(
    handshakeServer({
      "tools/list": () => ({ tools: [{ name: "t", inputSchema: { type: "object" }, outputSchema }] }),
      "tools/call": () => ({ content: [], structuredContent: value }),
    }),
  );
  await client.tools();
  assert.deepEqual((await client.callTool("t")).structuredContent, { n: 1 });
  value = { n: "one" };
  await assert.rejects(client.callTool("t"), { kind: "protocol", message: /output schema/ });
  await client.close();
});

test("an answer is used again for as long as the server allows, unless a fresh one is wanted", async () => {
  let reads = 0;
  const client = await custom(
    statelessServer(
      {
        "resources/read": ({ uri }) => {
          reads += 1;
          return {
            resultType: "complete",
            contents: [{ uri, text: String(reads) }],
            ttlMs: 60_000,
            cacheScope: "private",
          };
        },
      },
      { capabilities: { resources: {} } },
    ),
  );
  const read = async (options) => (await client.readResource("f:///a", options))[0].text;
  assert.deepEqual([await read(), await read(), await read({ refresh: true }), await read()], ["1", "1", "2", "2"]);
  await client.close();
});

test("a server at a port asks, logs and tells of changes", async () => {
  const [ours, theirs] = mcp.pair();
  const events = [];
  const updated = deferred();
  const levels = [];
  const server = serveAtPort(
    theirs,
    handshakeServer(
      {
        "logging/setLevel": ({ level }) => {
          levels.push(level);
          return {};
        },
        "resources/subscribe": () => ({}),
        "tools/call": async () => {
          const roots = await server.ask("roots/list", {});
          const form = {
            mode: "form",
            message: "Who?",
            requestedSchema: { type: "object", properties: { age: { default: 30 } } },
          };
          const answer = await server.ask("elicitation/create", form);
          const url = await server.ask("elicitation/create", {
            mode: "url",
            message: "m",
            url: "https://a.example/x",
            elicitationId: "1",
          });
          const refused = await server.ask("sampling/createMessage", {}).catch((error) => error.code);
          const evil = await server
            .ask("elicitation/create", { mode: "url", url: "file:///etc/passwd" })
            .catch(({ message }) => message);
          return { content: [{ type: "text", text: JSON.stringify({ roots, answer, url, refused, evil }) }] };
        },
      },
      { capabilities: everything },
    ),
  );
  const seen = [];
  const client = await mcp.connect(
    mcp.port(ours, {
      roots: [{ uri: "file:///work" }],
      elicitation: {
        form: ({ message }, { server }) => {
          seen.push(message, server);
          return { action: "accept", content: { name: "Ada" } };
        },
        url: ({ url }) => {
          seen.push(url);
          return { action: "decline" };
        },
      },
      onEvent(event) {
        events.push(event);
        if (event.type === "resource-updated") updated.resolve();
      },
    }),
    { name: "files" },
  );
  const { content } = await client.callTool("ask");
  assert.deepEqual(JSON.parse(content[0].text), {
    roots: { roots: [{ uri: "file:///work" }] },
    answer: { action: "accept", content: { name: "Ada", age: 30 } },
    url: { action: "decline" },
    refused: -32601,
    evil: "the server asks to open an address that is no page: file:",
  });
  assert.deepEqual(seen, ["Who?", "files", "https://a.example/x"]);

  await client.setLogLevel("warning");
  await client.subscribe("f:///a");
  server.notify("notifications/message", { level: "error", logger: "db", data: { broken: true } });
  server.notify("notifications/tools/list_changed");
  server.notify("notifications/novel", { x: 1 });
  server.notify("notifications/resources/updated", { uri: "f:///a" });
  await updated.promise;
  assert.deepEqual(levels, ["warning"]);
  assert.deepEqual(events.slice(1), [
    { type: "log", level: "error", logger: "db", data: { broken: true } },
    { type: "tools-changed" },
    { type: "notification", method: "notifications/novel", params: { x: 1 } },
    { type: "resource-updated", uri: "f:///a" },
  ]);
  assert.equal(events[0].type, "connected");
  assert.equal(events[0].record.revision, "2025-11-25");
  await client.close();
  assert.equal(events.at(-1).type, "closed");
});

test("nothing is offered to a server that nobody answers", async () => {
  const declared = [];
  const request = handshakeServer({});
  const spy = (message, context) => {
    if (message.method === "initialize") declared.push(message.params.capabilities);
    return request(message, context);
  };
  const roots = () => [];
  const sampling = () => {};
  const none = await custom(spy);
  const some = await custom(spy, { roots, sampling, elicitation: { form: () => ({ action: "cancel" }) } });
  assert.deepEqual(declared, [{}, { roots: { listChanged: true }, sampling: {}, elicitation: { form: {} } }]);
  await Promise.all([none.close(), some.close()]);
});

test("a stateless server asks inside its result, and is asked again with the answers", async () => {
  const tries = [];
  const client = await custom(
    statelessServer({
      "tools/call": (params) => {
        tries.push(params.inputResponses);
        if (params.inputResponses !== undefined)
          return { resultType: "complete", content: [], state: params.requestState };
        const ask = {
          method: "elicitation/create",
          params: { message: "Who?", requestedSchema: { type: "object", properties: {} } },
        };
        return { resultType: "input_required", inputRequests: { who: ask }, requestState: "s" };
      },
    }),
    { elicitation: { form: () => ({ action: "accept", content: { name: "Ada" } }) } },
  );
  assert.equal((await client.callTool("ask")).state, "s");
  assert.deepEqual(tries, [undefined, { who: { action: "accept", content: { name: "Ada" } } }]);
  await client.close();
});

test("what a server was asked is known by its record the next time", async () => {
  const methods = [];
  const request = handshakeServer({});
  const spy = (message, context) => {
    methods.push(message.method);
    return request(message, context);
  };
  let knownEra;
  const onEvent = (event) => {
    if (event.type === "connected") knownEra = event.record;
  };
  await (await custom(spy, { onEvent })).close();
  await (await custom(spy, { knownEra: JSON.parse(JSON.stringify(knownEra)) })).close();
  assert.deepEqual(methods, [
    "server/discover",
    "initialize",
    "notifications/initialized",
    "initialize",
    "notifications/initialized",
  ]);
});

test("an observer that throws ends nothing", async (context) => {
  const reported = deferred();
  context.mock.method(console, "error", (_, thrown) => reported.resolve(thrown));
  const client = await custom(handshakeServer({}), {
    async onEvent({ type }) {
      if (type === "connected") throw new Error("mine");
    },
  });
  assert.equal((await reported.promise).message, "mine");
  await client.close();
});

test("the user interface of a tool comes with what it asks for", async () => {
  const declared = [];
  const ui = { csp: { connectDomains: ["https://api.example"] }, permissions: { camera: {} }, prefersBorder: true };
  const contents = [{ uri: "ui://clock", mimeType: "text/html;profile=mcp-app", text: "<p>now</p>", _meta: { ui } }];
  const inputSchema = { type: "object" };
  const tools = [
    { name: "clock", inputSchema, _meta: { ui: { resourceUri: "ui://clock" } } },
    { name: "tick", inputSchema, _meta: { ui: { visibility: ["app"] } } },
    { name: "page", inputSchema, _meta: { ui: { resourceUri: "https://evil.example" } } },
  ];
  const request = handshakeServer(
    { "tools/list": () => ({ tools }), "resources/read": () => ({ contents }) },
    { capabilities: { tools: {}, resources: {} } },
  );
  const spy = (message, context) => {
    if (message.method === "initialize") declared.push(message.params.capabilities);
    return request(message, context);
  };
  const client = await custom(spy, { apps: true });
  const [clock, tick, page] = await client.tools();
  assert.deepEqual(await client.app(clock), { uri: "ui://clock", html: "<p>now</p>", ...ui });
  assert.deepEqual([await client.app(tick), await client.app(page)], [undefined, undefined]);
  contents[0].mimeType = "text/html";
  await assert.rejects(client.app(clock), { kind: "protocol" });
  assert.deepEqual(declared, [
    { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } } },
  ]);
  await client.close();

  const offered = [];
  const model = scriptedModel([
    ({ tools }) => {
      offered.push(...tools.map(({ name }) => name));
      return "ok";
    },
  ]);
  const agent = new Agent({ model, mcpServers: { s: mcp.custom({ request }) } });
  await agent.run("q");
  assert.deepEqual(offered, ["s__clock", "s__page"], "a tool for user interfaces only is not told to the model");
  const [server] = await agent.connect();
  assert.deepEqual(
    server.tools.map(({ name, toolName }) => [name, toolName]),
    ["clock", "tick", "page"].map((name) => [name, `s__${name}`]),
  );
  await agent.close();
});
