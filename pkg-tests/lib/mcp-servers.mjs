// MCP servers in the same program, for tests: scripted by what each method gives.

/** A handshake server: `answers` has a function a method, which gets the parameters and the message. */
export function handshakeServer(answers, { capabilities = { tools: {} }, revision = "2025-11-25" } = {}) {
  return (message, context) => {
    const all = {
      initialize: () => ({ protocolVersion: revision, capabilities, serverInfo: { name: "t", version: "1" } }),
      ...answers,
    };
    return answer(all, message, context);
  };
}

/** A server of the stateless era. */
export function statelessServer(answers, { capabilities = { tools: {} } } = {}) {
  return (message, context) => {
    const all = {
      "server/discover": () => ({ resultType: "complete", supportedVersions: ["2026-07-28"], capabilities }),
      ...answers,
    };
    return answer(all, message, context);
  };
}

async function answer(answers, message, context) {
  if (message.id === undefined || message.method === undefined) {
    await answers[message.method]?.(message.params, message, context);
    return undefined;
  }
  const method = answers[message.method];
  if (method === undefined)
    return { jsonrpc: "2.0", id: message.id, error: { code: -32601, message: "no such method" } };
  return { jsonrpc: "2.0", id: message.id, result: await method(message.params, message, context) };
}

/** Serves at a port, with requests of its own: `ask(method, params)` resolves with the client's result, or rejects. */
export function serveAtPort(port, request) {
  const waiting = new Map();
  let last = 0;
  port.addEventListener("message", async ({ data }) => {
    if (data.method === undefined) {
      const { resolve, reject } = waiting.get(data.id);
      return data.error ? reject(Object.assign(new Error(data.error.message), data.error)) : resolve(data.result);
    }
    const reply = await request(data);
    if (reply !== undefined) port.postMessage(reply);
  });
  port.start?.();
  return {
    notify: (method, params) => port.postMessage({ jsonrpc: "2.0", method, params }),
    ask(method, params) {
      last += 1;
      const id = `s${last}`;
      port.postMessage({ jsonrpc: "2.0", id, method, params });
      return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
    },
  };
}
