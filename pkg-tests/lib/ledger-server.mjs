// An MCP server over HTTP whose one tool, `step`, writes a line into a ledger at once and has its result when it is let go.
import { setTimeout } from "node:timers/promises";
import { deferred } from "../facade/support.mjs";
import { handshakeServer } from "./mcp-servers.mjs";
import { listen } from "./servers.mjs";

const STEP = {
  name: "step",
  description: "Does a step.",
  inputSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
};

/**
 * @param {{ delay?: number }} [options] with a `delay`, in milliseconds, no result waits for longer
 * @returns {Promise<{ url: string, ledger: readonly number[], written: (step: number) => Promise<void>, release: (step: number) => void, counted: (count: number) => Promise<void>, stop: () => Promise<void> }>}
 *   `written` resolves when the step stands in the ledger, `counted` when it has so many
 */
export async function startLedgerServer({ delay } = {}) {
  const ledger = [];
  const watchers = new Set();
  const gates = new Map();
  const gate = (step) => {
    if (!gates.has(step)) gates.set(step, { written: deferred(), released: deferred() });
    return gates.get(step);
  };
  const answer = handshakeServer({
    "tools/list": () => ({ tools: [STEP] }),
    "tools/call": async ({ arguments: { n } }) => {
      ledger.push(n);
      for (const watch of [...watchers]) watch();
      gate(n).written.resolve();
      await (delay === undefined ? gate(n).released.promise : setTimeout(delay));
      return { content: [{ type: "text", text: `step ${n} is done` }] };
    },
  });
  const server = await listen(async (request, response) => {
    if (request.method !== "POST") return response.writeHead(405).end();
    let text = "";
    for await (const piece of request) text += piece;
    const reply = await answer(JSON.parse(text));
    if (reply === undefined) return response.writeHead(202).end();
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(reply));
  });
  return {
    url: `${server.url}/mcp`,
    ledger,
    written: (step) => gate(step).written.promise,
    counted: (count) =>
      new Promise((resolve) => {
        const watch = () => {
          if (ledger.length < count) return;
          watchers.delete(watch);
          resolve();
        };
        watchers.add(watch);
        watch();
      }),
    release: (step) => gate(step).released.resolve(),
    stop: server.stop,
  };
}
