// The worker: a page, an endpoint that streams the answer to one question, and conversations that browsers watch together.
import { agentOf } from "./agent.js";
import type { Chat } from "./chat.js";
import chatPage from "./chat.html";
import enterPage from "./enter.html";
import { enter, userOf } from "./entrance.js";
import { type Env, ownPlace, protocolOf } from "./env.js";
import holder from "./holder.txt";
import { askMcpServer, askModel } from "./passing.js";
import { storeCallOf } from "./requests.js";

export { Chat } from "./chat.js";
export { Directory } from "./directory.js";

/** The longest question, in characters. */
const MAX_QUESTION = 100_000;

/** The longest that a browser writes into its conversation at once, in characters. */
const MAX_WRITE = 8_000_000;

/** The most objects that a conversation is looked for in; more than two only when a move was cut off. */
const MAX_MOVES = 16;

export default {
  async fetch(request, env): Promise<Response> {
    const { pathname, searchParams, origin } = new URL(request.url);
    const route = `${request.method} ${pathname}`;
    if (route === "POST /enter") return enter(request, env);
    if (route === "GET /holder.js") return script(holder);
    const user = await userOf(request, env);
    if (route === "GET /") return page(user === undefined ? enterPage : chatPage);
    if (user === undefined) return new Response("Not without the password.", { status: 401 });
    // A page of another site could open a WebSocket with the cookie of this one.
    const from = request.headers.get("origin");
    if (from !== null && from !== origin) return new Response("Not from there.", { status: 403 });

    if (route === "POST /ask") return ask(request, env);
    if (/^POST \/model\/(?:messages|chat\/completions)$/.test(route)) return askModel(request, env);
    if (pathname === "/mcp") return askMcpServer(request, env);
    if (route === "GET /chats") return Response.json(await list(env, user, searchParams));
    const [, name, action] = /^\/chats\/([\w-]{1,64})(?:\/([a-z]+))?$/.exec(pathname) ?? [];
    if (name === undefined) return new Response("There is no such thing here.", { status: 404 });
    const chat = await chatOf(env, user, name);
    if (action === undefined && request.headers.get("upgrade") === "websocket") {
      const told = new URLSearchParams({ user, name, have: searchParams.get("have") ?? "0" });
      return chat.fetch(new Request(`${origin}/?${told}`, request));
    }
    try {
      return await act(`${request.method} ${action ?? ""}`, request, env, chat);
    } catch (error) {
      return new Response(error instanceof Error ? error.message : String(error), { status: 409 });
    }
  },
} satisfies ExportedHandler<Env>;

/** What can be done with a conversation beside watching it. */
async function act(what: string, request: Request, env: Env, chat: DurableObjectStub<Chat>): Promise<Response> {
  const ticket = request.headers.get("ticket") ?? "";
  switch (what) {
    case "POST move": {
      const { jurisdiction } = (await request.json()) as { jurisdiction?: DurableObjectJurisdiction };
      return Response.json({ object: await chat.move(jurisdiction) });
    }
    case "POST lend": {
      const { mcpUrl, mcpAsks, approvalTimeoutMs } = ownPlace(env);
      const place = { protocol: protocolOf(env), model: env.MODEL, hasMcp: mcpUrl !== undefined };
      return Response.json({ ...(await chat.lend()), ...place, mcpAsks, approvalTimeoutMs });
    }
    case "POST store": {
      const text = await request.text();
      if (text.length > MAX_WRITE) return new Response("This is too much at once.", { status: 413 });
      return Response.json(await chat.store(ticket, storeCallOf(JSON.parse(text))));
    }
    case "POST return":
      await chat.giveBack(ticket);
      return new Response(null, { status: 204 });
    case "DELETE ":
      await chat.forget();
      return new Response(null, { status: 204 });
    default:
      return new Response("There is no such thing here.", { status: 404 });
  }
}

/** The object that has a conversation: the one that its name leads to, or the one that it was moved to from there. */
async function chatOf(env: Env, user: string, name: string): Promise<DurableObjectStub<Chat>> {
  const home = env.CHATS.get(env.CHATS.idFromName(`${user}/${name}`));
  let to = await home.movedTo();
  if (to === undefined) return home;
  for (let moves = 1; moves < MAX_MOVES; moves++) {
    const chat = env.CHATS.get(env.CHATS.idFromString(to));
    const further: string | undefined = await chat.movedTo();
    // Found at once the next time.
    if (further === undefined && moves > 1) await home.pointTo(to);
    if (further === undefined) return chat;
    to = further;
  }
  throw new Error(`the conversation ${name} was moved too often`);
}

/** A page of the list: `?after=` what the page before gave as `next`, `&limit=` how many. */
async function list(env: Env, user: string, asked: URLSearchParams) {
  const directory = env.DIRECTORIES.get(env.DIRECTORIES.idFromName(user));
  return directory.list(asked.get("after") ?? undefined, Number(asked.get("limit") ?? Number.MAX_SAFE_INTEGER) || 1);
}

/** Answers a question, told event by event; `readEvents` of crablet reads it. Nothing is kept. */
async function ask(request: Request, env: Env): Promise<Response> {
  const question = await request.text();
  if (question === "" || question.length > MAX_QUESTION)
    return new Response(`A question has 1 to ${MAX_QUESTION} characters.`, { status: 400 });
  return agentOf(ownPlace(env)).stream(question).toResponse();
}

/** The script of a page that works on a conversation by itself. It holds no secret. */
function script(text: string): Response {
  return new Response(text, { headers: { "content-type": "text/javascript; charset=utf-8" } });
}

/** A page whose one style and script in it are known by a number that is used once. */
function page(html: string): Response {
  const nonce = crypto.randomUUID();
  const policy =
    `default-src 'none'; script-src 'self' 'nonce-${nonce}' 'wasm-unsafe-eval'; style-src 'nonce-${nonce}'; ` +
    "connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
    "require-trusted-types-for 'script'; trusted-types 'none'";
  return new Response(html.replaceAll("{nonce}", nonce), {
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": policy,
      "cache-control": "no-store",
    },
  });
}
