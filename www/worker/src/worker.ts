// The worker: a page, an endpoint that streams the answer to one question, and conversations that browsers watch together.
import { agentOf } from "./agent.js";
import chatPage from "./chat.html";
import enterPage from "./enter.html";
import { enter, isAllowed } from "./entrance.js";
import type { Env } from "./env.js";

export { Chat } from "./chat.js";

/** The longest question, in characters. */
const MAX_QUESTION = 100_000;

export default {
  async fetch(request, env): Promise<Response> {
    const { pathname, origin } = new URL(request.url);
    const route = `${request.method} ${pathname}`;
    if (route === "POST /enter") return enter(request, env);
    const isIn = await isAllowed(request, env);
    if (route === "GET /") return page(isIn ? chatPage : enterPage);
    if (!isIn) return new Response("Not without the password.", { status: 401 });
    if (route === "POST /ask") return ask(request, env);

    const name = /^GET \/chats\/([\w-]{1,64})$/.exec(route)?.[1];
    if (name === undefined) return new Response("There is no such thing here.", { status: 404 });
    if (request.headers.get("upgrade") !== "websocket") return new Response("This is a WebSocket.", { status: 426 });
    // A page of another site could open a WebSocket with the cookie of this one.
    const from = request.headers.get("origin");
    if (from !== null && from !== origin) return new Response("Not from there.", { status: 403 });
    return env.CHATS.get(env.CHATS.idFromName(name)).fetch(request);
  },
} satisfies ExportedHandler<Env>;

/** Answers a question, told event by event; `readEvents` of crablet reads it. Nothing is kept. */
async function ask(request: Request, env: Env): Promise<Response> {
  const question = await request.text();
  if (question === "" || question.length > MAX_QUESTION)
    return new Response(`A question has 1 to ${MAX_QUESTION} characters.`, { status: 400 });
  return agentOf(env).stream(question).toResponse();
}

/** A page whose one script and style are known by a number that is used once. */
function page(html: string): Response {
  const nonce = crypto.randomUUID();
  const policy =
    `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src 'self'; img-src data:; ` +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
  return new Response(html.replaceAll("{nonce}", nonce), {
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": policy,
      "cache-control": "no-store",
    },
  });
}
