// Passes requests of a browser that works on a conversation on to the model and the MCP server: the key stays here, and the
// browser needs no other origin.
import { type Env, protocolOf } from "./env.js";

/** The longest request to the model, in characters. */
const MAX_REQUEST = 8_000_000;

/** What of a request is passed on. Not the cookie, nor whatever else says who the user is. */
const HEADERS = /^(?:accept|content-type|last-event-id|anthropic-(?:version|beta)|mcp-.*)$/;

export async function askModel(request: Request, env: Env): Promise<Response> {
  const text = await request.text();
  if (text.length > MAX_REQUEST) return new Response("This is too long for the model.", { status: 413 });
  // Who may come in may speak to this model and no other.
  const { model } = JSON.parse(text) as { readonly model?: unknown };
  if (model !== env.MODEL) return new Response("This is another model.", { status: 403 });
  const isAnthropic = protocolOf(env) === "anthropic";
  const headers = headersOf(request);
  if (env.API_KEY) {
    if (isAnthropic) headers.set("x-api-key", env.API_KEY);
    else headers.set("authorization", `Bearer ${env.API_KEY}`);
  }
  const url = isAnthropic ? "https://api.anthropic.com/v1/messages" : `${env.MODEL_URL}/chat/completions`;
  return fetch(url, { method: "POST", headers, body: text, signal: request.signal });
}

export async function askMcpServer(request: Request, env: Env): Promise<Response> {
  if (env.MCP_URL === "") return new Response("There is no MCP server.", { status: 404 });
  return fetch(env.MCP_URL, {
    method: request.method,
    headers: headersOf(request),
    body: request.body,
    signal: request.signal,
    redirect: "manual",
  });
}

function headersOf(request: Request): Headers {
  return new Headers([...request.headers].filter(([name]) => HEADERS.test(name)));
}
