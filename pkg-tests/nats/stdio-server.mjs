// An MCP server on standard input and output: `stdio-server.mjs ERA LEDGER`. Every call of `mark` is a line of the ledger.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [, , era, ledger] = process.argv;
const isStateless = era === "stateless";
const VERSION = "2026-07-28";
let count = 0;
let cancelled = 0;
const questions = new Map();

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const reply = (id, result) => send({ id, result: isStateless ? { resultType: "complete", ...result } : result });
const say = (id, text) => reply(id, { content: [{ type: "text", text }] });

/** Writes its number, and has its result after some milliseconds. */
function mark(id, { n, milliseconds = 0 }) {
  appendFileSync(ledger, `${n}\n`);
  if (milliseconds === 0) say(id, `marked ${n}`);
  else setTimeout(() => say(id, `marked ${n}`), milliseconds);
}

/** As `mark`, but without the milliseconds for a number that stands there already. */
function markAgain(id, { n, milliseconds }) {
  const isThere = existsSync(ledger) && readFileSync(ledger, "utf8").split("\n").includes(String(n));
  mark(id, { n, milliseconds: isThere ? 0 : milliseconds });
}

/** What the list says of tools. */
const annotations = {
  pid: { readOnlyHint: true },
  read: { readOnlyHint: true },
  set: { readOnlyHint: false, idempotentHint: true },
  add: { readOnlyHint: false, idempotentHint: false },
};

const tools = {
  mark,
  read: markAgain,
  set: markAgain,
  add: markAgain,
  /** What only this process knows. */
  count: (id) => say(id, String(++count)),
  pid: (id) => say(id, String(process.pid)),
  cancelled: (id) => say(id, String(cancelled)),
  big: (id, { bytes }) => say(id, "x".repeat(bytes)),
  progress(id, _input, token) {
    for (const progress of [1, 2]) {
      send({ method: "notifications/progress", params: { progressToken: token, progress } });
    }
    questions.set("go", () => say(id, "done"));
  },
  /** Lets `progress` end. */
  go(id) {
    questions.get("go")?.();
    say(id, "went");
  },
  /** Writes 0, and is through when a file is there. */
  gate(id, { file }) {
    appendFileSync(ledger, "0\n");
    const look = setInterval(() => {
      if (!existsSync(file)) return;
      clearInterval(look);
      say(id, "through");
    }, 20);
  },
  /** Never answered. */
  hang() {},
  ask(id) {
    questions.set(`q${id}`, ({ result }) => say(id, `hello ${result?.content?.name}`));
    const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
    send({ id: `q${id}`, method: "elicitation/create", params: { message: "Who?", requestedSchema } });
  },
  change(id) {
    send({ method: "notifications/tools/list_changed" });
    say(id, "changed");
  },
};

const offered = Object.keys(tools).map((name) => ({
  name,
  inputSchema: { type: "object" },
  ...(annotations[name] && { annotations: annotations[name] }),
}));

const methods = {
  initialize: (id, { protocolVersion }) =>
    reply(id, {
      protocolVersion,
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: "handshake", version: "1" },
    }),
  "server/discover": (id) => reply(id, { supportedVersions: [VERSION], capabilities: { tools: {} } }),
  "tools/list": (id) => reply(id, { tools: offered }),
  "tools/call": (id, params) => tools[params.name](id, params.arguments ?? {}, params._meta?.progressToken),
};
const unknown = isStateless ? "initialize" : "server/discover";

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.method === undefined) return questions.get(message.id)?.(message);
  if (message.method === "notifications/cancelled") cancelled += 1;
  if (message.id === undefined) return;
  const answer = message.method === unknown ? undefined : methods[message.method];
  if (answer) answer(message.id, message.params ?? {});
  else send({ id: message.id, error: { code: -32601, message: `there is no method ${message.method}` } });
});
