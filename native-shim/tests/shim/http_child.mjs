// A server on standard input and output whose tools do what the tests of the HTTP front need: `http_child.mjs ERA`.
import { createInterface } from "node:readline";

const isStateless = process.argv[2] === "stateless";
const subscriptions = [];
const asked = new Map();
const open = new Set();
let cancelled = 0;

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const reply = (id, result) => send({ id, result: isStateless ? { resultType: "complete", ...result } : result });
const say = (id, text) => reply(id, { content: [{ type: "text", text }] });
const meta = (params) => params?._meta ?? {};

const question = {
  method: "elicitation/create",
  params: { message: "Who?", requestedSchema: { type: "object", properties: { name: { type: "string" } } } },
};

const tools = {
  echo: (id, params) => say(id, JSON.stringify(params.arguments)),
  pid: (id) => say(id, String(process.pid)),
  cancelled: (id) => say(id, String(cancelled)),
  // Never answered.
  hang: (id, params) => {
    open.add(id);
    const { progressToken } = meta(params);
    if (progressToken !== undefined) send({ method: "notifications/progress", params: { progressToken, progress: 1 } });
  },
  ask(id, params) {
    if (!isStateless) {
      asked.set(`q${id}`, (answer) => say(id, answer?.content?.name ?? "nobody"));
      send({ id: `q${id}`, ...question });
    } else if (params.inputResponses?.who === undefined) {
      send({ id, result: { resultType: "input_required", inputRequests: { who: question }, requestState: "s" } });
    } else {
      say(id, params.inputResponses.who.content?.name ?? "nobody");
    }
  },
  progress(id, params) {
    const { progressToken } = meta(params);
    for (const progress of [1, 2]) send({ method: "notifications/progress", params: { progressToken, progress } });
    say(id, "done");
  },
  change(id) {
    const method = "notifications/tools/list_changed";
    if (!isStateless) send({ method });
    for (const subscription of subscriptions) {
      send({ method, params: { _meta: { "io.modelcontextprotocol/subscriptionId": subscription } } });
    }
    say(id, "changed");
  },
  flood(id, params) {
    const { progressToken } = meta(params);
    const message = "x".repeat(1024 * 1024);
    for (let progress = 1; progress <= 64; progress++) {
      send({ method: "notifications/progress", params: { progressToken, progress, message } });
    }
    open.add(id);
  },
  crash() {
    process.stderr.write("it was the server\n");
    process.exit(3);
  },
};

const capabilities = { tools: { listChanged: true } };
const info = { name: "child", version: "1" };

const requests = {
  initialize: (id, params) => reply(id, { protocolVersion: params.protocolVersion, capabilities, serverInfo: info }),
  "server/discover": (id) =>
    reply(id, {
      supportedVersions: ["2026-07-28"],
      capabilities,
      ttlMs: 0,
      cacheScope: "private",
      _meta: { "io.modelcontextprotocol/serverInfo": info },
    }),
  ping: (id) => reply(id, {}),
  "tools/list": (id) => {
    const listed = Object.keys(tools).map((name) => ({ name, inputSchema: { type: "object" } }));
    reply(id, { tools: listed, ...(isStateless ? { ttlMs: 0, cacheScope: "private" } : {}) });
  },
  "tools/call": (id, params) => tools[params.name](id, params),
  "subscriptions/listen": (id, params) => {
    subscriptions.push(id);
    const subscription = { "io.modelcontextprotocol/subscriptionId": id };
    const acknowledged = { notifications: params.notifications, _meta: subscription };
    send({ method: "notifications/subscriptions/acknowledged", params: acknowledged });
  },
};

/** Which requests each era has. */
const known = new Set(
  isStateless
    ? ["server/discover", "tools/list", "tools/call", "subscriptions/listen"]
    : ["initialize", "ping", "tools/list", "tools/call"],
);

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result } = JSON.parse(line);
  if (method === "notifications/cancelled") {
    if (open.delete(params.requestId)) cancelled += 1;
  } else if (method === undefined) {
    asked.get(id)?.(result);
  } else if (id !== undefined) {
    if (known.has(method)) requests[method](id, params);
    else send({ id, error: { code: -32601, message: "unknown" } });
  }
});
