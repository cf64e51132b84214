// An agent of this machine, as far as MCP goes: asks `crablet-shim expose` over standard input and output, in the era without handshake.
import { createInterface } from "node:readline";

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};

/**
 * Asks once, with a process of its own.
 *
 * @param {{ agent: () => import("node:child_process").ChildProcess }} shim of `startShim`
 * @returns {Promise<unknown>} the result
 */
export async function askAsAgent(shim, method, params = {}) {
  const child = shim.agent();
  try {
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: META } })}\n`);
    for await (const line of createInterface({ input: child.stdout })) {
      const { id, result, error } = JSON.parse(line);
      if (error) throw new Error(`${method}: ${error.message}`);
      if (id === 1) return result;
    }
    throw new Error(`crablet-shim expose ended before it answered ${method}`);
  } finally {
    child.kill();
  }
}
