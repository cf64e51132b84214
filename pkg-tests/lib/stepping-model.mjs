// A model over OpenAI's protocol that works in steps: each answer calls a tool once more, until all steps are done. It holds
// each answer in mid-stream until it is let go, so that a test can stop whatever reads it just then.
import { deferred } from "../facade/support.mjs";
import { listen } from "./servers.mjs";

/**
 * @param {{ steps: number, tool: string, input?: (step: number, prompt: string) => object, held?: boolean }} options the name of the tool
 *   and what it is given, `{ n }` by default; with `held: false` no answer waits
 * @returns {Promise<{ url: string, asked: (step: number, times?: number) => Promise<void>, release: (step: number) => void, keys: Set<string>, stop: () => Promise<void> }>}
 *   `asked` resolves when the answer of a step was begun so many times; the step after the last one is the closing answer.
 *   `keys` has what clients authorized themselves with
 */
export async function startSteppingModel({ steps, tool, input = (n) => ({ n }), held = true }) {
  const asked = new Map();
  const released = new Map();
  const keys = new Set();
  const watchers = new Set();

  const gate = (step) => {
    if (!released.has(step)) released.set(step, deferred());
    return released.get(step);
  };
  const count = (step) => {
    asked.set(step, (asked.get(step) ?? 0) + 1);
    for (const watch of [...watchers]) watch();
  };

  const server = await listen(async (request, response) => {
    response.setHeader("access-control-allow-origin", "*");
    response.setHeader("access-control-allow-headers", request.headers["access-control-request-headers"] ?? "*");
    if (request.method === "OPTIONS") return response.writeHead(204).end();
    if (request.headers.authorization) keys.add(request.headers.authorization);
    let text = "";
    for await (const piece of request) text += piece;
    const { messages } = JSON.parse(text);
    const prompt = messages.findLastIndex(({ role }) => role === "user");
    const results = messages.slice(prompt).filter(({ role }) => role === "tool");
    const step = results.length + 1;
    const say = (delta, finish_reason = null) =>
      response.write(`data: ${JSON.stringify({ id: "1", choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    response.writeHead(200, { "content-type": "text/event-stream" });
    say({ role: "assistant", content: step > steps ? "All is done: " : `Now step ${step}.` });
    count(step);
    if (held) await gate(step).promise;
    if (step > steps) {
      say({ content: results.map(({ content }) => content).join(", ") });
      say({}, "stop");
    } else {
      const call = { name: tool, arguments: JSON.stringify(input(step, messages[prompt].content)) };
      say({ tool_calls: [{ index: 0, id: `call-${step}`, type: "function", function: call }] });
      say({}, "tool_calls");
    }
    response.end("data: [DONE]\n\n");
  });

  return {
    url: `${server.url}/v1`,
    asked: (step, times = 1) =>
      new Promise((resolve) => {
        const watch = () => {
          if ((asked.get(step) ?? 0) < times) return;
          watchers.delete(watch);
          resolve();
        };
        watchers.add(watch);
        watch();
      }),
    release: (step) => gate(step).resolve(),
    keys,
    stop: server.stop,
  };
}
