// What is left when runs are over: no timer, no listener, no request, however they end.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Agent, mcp, openaiCompatible, tool } from "crablet";
import { startModelServer } from "../../www/demo/model-server.mjs";

const ROUNDS = 20;

let model;
before(async () => {
  model = await startModelServer({ delay: 0 });
});
after(() => model.close());

/** The caller's signal. Those that the package makes go with their runs. */
const { signal } = new AbortController();

const listeners = new Set();
const timers = new Set();
watch();

/** Counts the listeners of the caller's signal, and the timers of the package: the platform's `fetch` has some of its own. */
function watch() {
  const { addEventListener, removeEventListener } = signal;
  Object.assign(signal, {
    addEventListener(name, listener, options) {
      listeners.add(listener);
      addEventListener.call(signal, name, listener, options);
    },
    removeEventListener(name, listener, options) {
      listeners.delete(listener);
      removeEventListener.call(signal, name, listener, options);
    },
  });
  const { setTimeout, clearTimeout } = globalThis;
  globalThis.setTimeout = (call, delay, ...given) => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      call(...given);
    }, delay);
    if (new Error().stack.includes("node_modules/crablet/")) timers.add(timer);
    return timer;
  };
  globalThis.clearTimeout = (timer) => {
    if (timers.delete(timer)) cleared += 1;
    clearTimeout(timer);
  };
}
let cleared = 0;

/** Runs that end well, that are left, aborted, out of time, refused, broken off; tools that hang; servers that are closed. */
async function runs() {
  const input = { type: "object" };
  const hang = (_input, { signal: aborted }) =>
    new Promise((_, reject) => aborted.addEventListener("abort", () => reject(aborted.reason), { once: true }));
  const tools = {
    get_weather: tool({ description: "Get the weather of a city", input, timeoutMs: 60_000, execute: () => "rain" }),
  };
  const options = { tools, timeoutMs: 60_000, hookTimeoutMs: 60_000, beforeToolCall: async () => undefined };
  const agentOf = (name, more) =>
    new Agent({ model: openaiCompatible(name, { baseUrl: model.url }), ...options, retry: false, ...more });
  const ignored = (run) => run.result.catch(() => {});
  for (let round = 0; round < ROUNDS; round += 1) {
    await agentOf("scripted-demo").run('get the weather in "Oslo"', { signal });
    for await (const event of agentOf("scripted-demo").stream("hello", { signal }))
      if (event.type === "text-delta") break;
    for (const name of ["bad-key", "error-200", "error-in-stream", "cut", "cut-clean"])
      await ignored(agentOf(name).stream("hello", { signal }));
    await ignored(agentOf("silent", { firstByteTimeoutMs: 5 }).stream("hello", { signal }));
    const aborted = agentOf("silent").stream("hello", { signal });
    const ended = ignored(aborted);
    aborted.abort();
    await ended;
    const stuck = {
      get_weather: tool({ description: "Get the weather of a city", input, timeoutMs: 5, execute: hang }),
    };
    await ignored(agentOf("scripted-demo", { tools: stuck }).stream('get the weather in "Oslo"', { signal }));
    const client = await mcp.connect(mcp.custom({ request: answering }), { signal });
    await client.tools();
    await client.callTool("never", {}, { signal: AbortSignal.timeout(5) }).catch(() => {});
    await client.close();
  }
}

/** An MCP server whose one tool never answers. */
function answering({ id, method }) {
  const result = (value) => ({ jsonrpc: "2.0", id, result: value });
  if (method === "initialize")
    return result({
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "s", version: "1" },
    });
  if (method === "tools/list") return result({ tools: [{ name: "never", inputSchema: { type: "object" } }] });
  if (method === "tools/call") return new Promise(() => {});
  return id === undefined ? undefined : { jsonrpc: "2.0", id, error: { code: -32_601, message: "no such method" } };
}

test("no timer and no listener is left of runs, however they end", async () => {
  await runs();
  assert.ok(cleared > ROUNDS, "timers are counted");
  assert.deepEqual([timers.size, listeners.size], [0, 0]);
});

test("no request is left open", async () => {
  let open = 0;
  let closed = () => {};
  const server = createServer((request, response) => {
    request.resume();
    open += 1;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write('data: {"choices":[{"index":0,"delta":{"content":"word"}}]}\n\n');
    response.on("close", () => {
      open -= 1;
      closed();
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const agent = new Agent({
    model: openaiCompatible("m", { baseUrl: `http://127.0.0.1:${server.address().port}` }),
    retry: false,
    idleTimeoutMs: 50,
  });
  const ways = {
    async left(run) {
      for await (const event of run) if (event.type === "text-delta") break;
    },
    async aborted(run) {
      for await (const event of run) if (event.type === "text-delta") run.abort();
    },
    async disposed(run) {
      for await (const event of run) if (event.type === "text-delta") return run[Symbol.asyncDispose]();
    },
    "out of time": (run) => assert.rejects(run.result, { kind: "timeout" }),
  };
  for (const end of Object.values(ways)) {
    for (let round = 0; round < ROUNDS; round += 1) {
      const gone = new Promise((resolve) => {
        closed = resolve;
      });
      const run = agent.stream("hi");
      run.result.catch(() => {});
      await end(run);
      await gone;
    }
  }
  assert.equal(open, 0);
  server.close();
});
