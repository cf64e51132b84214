// An MCP server over HTTP whose one tool, `step`, writes a line into a ledger at once and has its result when it is let go.
import { deferred } from "../facade/support.mjs";
import { handshakeServer } from "./mcp-servers.mjs";
import { listen } from "./servers.mjs";

const STEP = {
  name: "step",
  description: "Does a step.",
  inputSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
};

/**
 * @returns {Promise<{ url: string, ledger: readonly number[], written: (step: number) => Promise<void>, release: (step: number) => void, stop: () => Promise<void> }>}
 *   `written` resolves when the step stands in the ledger
 */
export async function startLedgerServer() {
  const ledger = [];
  const gates = new Map();
  const gate = (step) => {
    if (!gates.has(step)) gates.set(step, { written: deferred(), released: deferred() });
    return gates.get(step);
  };
  const answer = handshakeServer({
    "tools/list": () => ({ tools: [STEP] }),
    "tools/call": async ({ arguments: { n } }) => {
      ledger.push(n);
      gate(n).written.resolve();
      await gate(n).released.promise;
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
    release: (step) => gate(step).released.resolve(),
    stop: server.stop,
  };
}
