// MCP servers, on one that is a function of this test.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, mcp, subAgent, tool } from "crablet";
import { scriptedModel } from "crablet/test";
import { handshakeServer, serveAtPort } from "../lib/mcp-servers.mjs";
import { collect, deferred } from "./support.mjs";

const inputSchema = { type: "object", properties: { text: { type: "string" } } };

/** A server of the 2025-06-18 revision with these tools. Remembers the methods it was asked. */
function serverWith(tools) {
  const methods = [];
  const request = async (message, { signal }) => {
    methods.push(message.method);
    if (message.id === undefined) return undefined;
    const answer = (result) => ({ jsonrpc: "2.0", id: message.id, result });
    switch (message.method) {
      case "initialize":
        return answer({
          protocolVersion: "2025-06-18",
          capabilities: { tools: {} },
          serverInfo: { name: "t", version: "1" },
        });
      case "tools/list":
        return answer({ tools: Object.keys(tools).map((name) => ({ name, description: name, inputSchema })) });
      case "tools/call":
        return answer(await tools[message.params.name](message.params.arguments, signal));
      default:
        return { jsonrpc: "2.0", id: message.id, error: { code: -32601, message: "no such method" } };
    }
  };
  return { server: mcp.custom({ request }), methods };
}

const text = (value) => ({ content: [{ type: "text", text: value }] });

test("an agent has the tools of its servers, under names that tell them apart", async () => {
  const { server, methods } = serverWith({ echo: ({ text: said }) => text(`Echo: ${said}`) });
  const model = scriptedModel([
    ({ tools }) => [{ type: "tool-call", toolName: tools[0].name, input: { text: "hi" } }],
    ({ messages }) => messages.at(-1).content[0].content[0].text,
  ]);
  const agent = new Agent({ model, mcpServers: { first: server } });
  const events = await collect(agent.stream("echo hi"));
  assert.equal(events.find(({ type }) => type === "tool-call").toolName, "first__echo");
  assert.equal(events.at(-1).text, "Echo: hi");
  await agent.run("again").catch(() => {});
  assert.equal(methods.filter((method) => method === "initialize").length, 1, "the connection is kept");
  await agent.close();
});

test("tools of servers are found when they are needed, beside the agent's own", async () => {
  const { server } = serverWith({ echo: ({ text: said }) => text(`Echo: ${said}`), other: () => text("no") });
  const own = tool({ description: "repeats as an echo", input: { type: "object" }, execute: () => "own" });
  const model = scriptedModel([
    [{ type: "tool-call", toolName: "listTools", input: { query: "echo" } }],
    [{ type: "tool-call", toolName: "first__echo", input: { text: "hi" } }],
    ({ messages }) => messages.at(-1).content[0].content[0].text,
  ]);
  const agent = new Agent({ model, tools: { own }, mcpServers: { first: server }, discovery: true });
  assert.equal((await agent.run("echo hi")).text, "Echo: hi");
  const offered = model.requests.map(({ tools }) => tools.map(({ name }) => name).sort());
  assert.deepEqual(offered.slice(0, 2), [["listTools"], ["first__echo", "listTools", "own"]]);
  await agent.close();
});

test("a sub-agent has the tools of its own servers", async () => {
  const { server } = serverWith({ echo: ({ text: said }) => text(`Echo: ${said}`) });
  const inner = scriptedModel([
    ({ tools }) => [{ type: "tool-call", toolName: tools[0].name, input: { text: "hi" } }],
    ({ messages }) => messages.at(-1).content[0].content[0].text,
  ]);
  const helper = new Agent({ model: inner, mcpServers: { first: server } });
  const outer = scriptedModel([
    [{ type: "tool-call", toolName: "helper", input: { prompt: "echo hi" } }],
    ({ messages }) => messages.at(-1).content[0].content[0].text,
  ]);
  const agent = new Agent({ model: outer, tools: { helper: subAgent({ description: "h", agent: helper }) } });
  assert.equal((await agent.run("go")).text, "Echo: hi");
  await agent.close();
  await helper.close();
});

test("tools that a call adds are the agent's at its next step", async () => {
  const [ours, theirs] = mcp.pair();
  let names = ["grow"];
  const server = serveAtPort(
    theirs,
    handshakeServer({
      "tools/list": () => ({ tools: names.map((name) => ({ name, inputSchema })) }),
      "tools/call": ({ name }) => {
        if (name === "late") return text("never too late");
        names = ["grow", "late"];
        server.notify("notifications/tools/list_changed");
        return text("grown");
      },
    }),
  );
  const model = scriptedModel([
    () => [{ type: "tool-call", toolName: "s__grow", input: {} }],
    ({ tools }) => [{ type: "tool-call", toolName: tools.at(-1).name, input: {} }],
    ({ messages }) => messages.at(-1).content[0].content[0].text,
  ]);
  const agent = new Agent({ model, mcpServers: { s: mcp.port(ours) } });
  assert.equal((await agent.run("go")).text, "never too late");
  const [{ client }] = await agent.connect();
  assert.equal((await client.callTool("late")).content[0].text, "never too late");
  await agent.close();
});

test("connect says what tools there are", async () => {
  const { server } = serverWith({ a: () => text("a"), b: () => text("b") });
  const agent = new Agent({ model: scriptedModel([]), mcpServers: { one: server } });
  const [connected] = await agent.connect();
  assert.equal(connected.name, "one");
  assert.deepEqual(
    connected.tools.map(({ name }) => name),
    ["a", "b"],
  );
  await agent.close();
});

test("a client calls tools, and a tool that fails is a result", async () => {
  const { server } = serverWith({ bad: () => ({ ...text("it broke"), isError: true }) });
  const client = await mcp.connect(server);
  assert.deepEqual(await client.callTool("bad"), { ...text("it broke"), isError: true });
  await client.close();
  await assert.rejects(client.tools(), (error) => error.kind === "invalid-input");
});

test("a signal cancels a call", async () => {
  const started = deferred();
  let cancelled;
  const { server } = serverWith({
    hang: (_input, signal) => {
      cancelled = signal;
      started.resolve();
      return new Promise(() => {});
    },
  });
  const client = await mcp.connect(server);
  const controller = new AbortController();
  const reason = new Error("enough");
  const call = client.callTool("hang", {}, { signal: controller.signal });
  await started.promise;
  controller.abort(reason);
  await assert.rejects(call, (error) => error === reason);
  await new Promise((resolve) => setTimeout(resolve, 1));
  assert.equal(cancelled.aborted, true);
  await client.close();
});

test("a server that cannot be reached is named, and tried again by the next run", async () => {
  let isDown = true;
  const { server } = serverWith({});
  const flaky = mcp.custom({
    request: (message, context) => {
      if (isDown) throw new Error("the cable is out");
      return server.request(message, context);
    },
  });
  const agent = new Agent({ model: scriptedModel(["ok"]), mcpServers: { files: flaky } });
  await assert.rejects(agent.run("hi"), /MCP server "files".*the cable is out/s);
  isDown = false;
  assert.equal((await agent.run("hi")).text, "ok");
  await agent.close();
});

/** A class that refuses every connection, as `ws` does: an error event, then a close event. */
class RefusedSocket {
  static seen = [];
  constructor(url, protocols) {
    RefusedSocket.seen.push({ url, protocols: [...protocols] });
    setTimeout(() => {
      this.onerror({ type: "error" });
      this.onclose({ code: 1006, reason: "" });
    });
  }
  close() {}
}

test("the shim is reached by the WebSocket that is given", async () => {
  const token = `key.${"A".repeat(43)}`;
  await assert.rejects(
    mcp.connect(mcp.shim({ server: "files", token, WebSocket: RefusedSocket })),
    (error) => error.kind === "network" && /not running, or refused/.test(error.message),
  );
  assert.equal(RefusedSocket.seen[0].url, "ws://127.0.0.1:6735/servers/files");
  assert.ok(!JSON.stringify(RefusedSocket.seen).includes("A".repeat(43)));
});

/** A class whose sockets do not open, and that tells of an error when one is closed all the same, as platforms do. */
class UnopenedSocket {
  static closed = [];
  readyState = 0;
  close() {
    // With the handler of that moment: the socket may be forgotten by then.
    UnopenedSocket.closed.push(() => this.onerror?.({ type: "error" }));
  }
}

test("a socket that was given up before it was open may tell of an error afterwards", async () => {
  const told = deferred();
  const running = new Agent({
    model: async function* () {
      await told.promise;
      yield "unharmed";
    },
  }).run("hello");
  const controller = new AbortController();
  const shim = mcp.shim({ server: "files", token: `key.${"A".repeat(43)}`, WebSocket: UnopenedSocket });
  const connecting = mcp.connect(shim, { signal: controller.signal });
  await new Promise((resolve) => setTimeout(resolve));
  controller.abort();
  await assert.rejects(connecting, (error) => error.name === "AbortError");
  while (UnopenedSocket.closed.length === 0) await new Promise((resolve) => setTimeout(resolve));
  for (const tell of UnopenedSocket.closed) tell();
  told.resolve();
  assert.equal((await running).text, "unharmed");
});

test("where there is no WebSocket, the error says what to do", async (context) => {
  const { WebSocket } = globalThis;
  context.after(() => Object.assign(globalThis, { WebSocket }));
  globalThis.WebSocket = undefined;
  await assert.rejects(
    mcp.connect(mcp.shim({ server: "files", token: "any" })),
    (error) =>
      error.kind === "invalid-input" && /from 22 on.*mcp\.shim\(\{ server, token, WebSocket \}\)/s.test(error.message),
  );
});

test("outside of an extension there is no native messaging, and the error says what to do", async () => {
  await assert.rejects(
    mcp.connect(mcp.nativeMessaging({ server: "files" })),
    (error) => error.kind === "invalid-input" && /permission nativeMessaging.*mcp\.shim\(\)/s.test(error.message),
  );
  assert.throws(
    () => mcp.nativeMessaging({}),
    (error) => error.kind === "invalid-input",
  );
});

test("a token that is none is refused with a reason", async () => {
  await assert.rejects(
    mcp.connect(mcp.shim({ server: "files", token: "nonsense", WebSocket: RefusedSocket })),
    (error) => error.kind === "invalid-input",
  );
  assert.throws(
    () => mcp.shim({ server: "files" }),
    (error) => error.kind === "invalid-input",
  );
});
