// An authorization server and an MCP server that takes its tokens, over HTTP on the loopback interface. The protocol is real:
// codes and refresh tokens work once, PKCE, redirect addresses, resources and client secrets are checked, and tokens end.
import { createHash, randomBytes } from "node:crypto";
import { text } from "node:stream/consumers";
import { CORS, listen } from "./servers.mjs";
import { handshakeServer } from "./mcp-servers.mjs";

const hash = (text) => createHash("sha256").update(text).digest("base64url");

/**
 * @param {{ scope?: string, lifetime?: number, page?: boolean, isolated?: boolean, interfere?: (asked: object) => unknown }} [options] `scope`: what a tool call needs beyond a token;
 *   `lifetime`: of tokens, in seconds; `page`: whether the person is shown a page with a link, and not sent back at once;
 *   `isolated`: whether that page cuts its tie with whoever opened it; `interfere` is given `{ url, request, response, body }` of each
 *   request before it is answered, and answers itself where it gives something
 */
export async function startOAuthServers({ scope, lifetime = 3600, page = false, isolated = false, interfere } = {}) {
  const seen = {
    requests: [],
    authorizations: [],
    grants: [],
    registrations: [],
    tokens: new Set(),
    secrets: new Set(),
  };
  const state = { clients: new Map(), codes: new Map(), access: new Map(), refresh: new Map(), lifetime };
  const make = (kind) => {
    const made = `planted-${kind}-${randomBytes(12).toString("base64url")}`;
    seen.secrets.add(made);
    return made;
  };
  const json = (response, status, body, headers = {}) =>
    response.writeHead(status, { "content-type": "application/json", ...CORS, ...headers }).end(JSON.stringify(body));

  const authorization = await listen(async (request, response) => {
    const url = new URL(request.url, authorization.url);
    seen.requests.push(`${request.method} as ${url.pathname}`);
    if (request.method === "OPTIONS") return response.writeHead(204, CORS).end();
    const body = await text(request);
    if (interfere?.({ url, request, response, body })) return;
    switch (url.pathname) {
      case "/.well-known/oauth-authorization-server":
        return json(response, 200, {
          issuer: authorization.url,
          authorization_endpoint: `${authorization.url}/authorize`,
          token_endpoint: `${authorization.url}/token`,
          registration_endpoint: `${authorization.url}/register`,
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
          token_endpoint_auth_methods_supported: ["client_secret_basic"],
          authorization_response_iss_parameter_supported: true,
        });
      case "/register": {
        const { redirect_uris } = JSON.parse(body);
        const [client_id, client_secret] = [`client-${state.clients.size}`, make("secret")];
        state.clients.set(client_id, { client_secret, redirect_uris });
        seen.registrations.push(JSON.parse(body));
        return json(response, 201, { client_id, client_secret, redirect_uris });
      }
      case "/authorize":
        return authorize(url, response);
      case "/token": {
        const outcome = grant(request.headers.authorization, new URLSearchParams(body));
        return json(response, outcome.error ? 400 : 200, outcome);
      }
      default:
        return response.writeHead(404, CORS).end();
    }
  });

  function authorize(url, response) {
    const asked = Object.fromEntries(url.searchParams);
    const client = state.clients.get(asked.client_id);
    const isSound =
      client?.redirect_uris.includes(asked.redirect_uri) &&
      asked.response_type === "code" &&
      asked.code_challenge_method === "S256" &&
      asked.resource === `${server.url}/mcp`;
    if (!isSound) return response.writeHead(400).end("This request is not sound.");
    seen.authorizations.push(asked);
    const code = make("code");
    state.codes.set(code, asked);
    const back = new URL(asked.redirect_uri);
    for (const [name, value] of Object.entries({ code, state: asked.state, iss: authorization.url }))
      back.searchParams.set(name, value);
    if (!page) return response.writeHead(302, { location: back.href }).end();
    const link = back.href.replaceAll("&", "&amp;");
    const policy = isolated ? { "cross-origin-opener-policy": "same-origin" } : {};
    return response
      .writeHead(200, { "content-type": "text/html", ...policy })
      .end(`<a id="allow" href="${link}">Allow</a>`);
  }

  function grant(basic, asked) {
    const [id, secret] = Buffer.from(basic?.slice(6) ?? "", "base64")
      .toString()
      .split(":")
      .map(decodeURIComponent);
    if (!state.clients.has(id) || state.clients.get(id).client_secret !== secret) return { error: "invalid_client" };
    const kind = asked.get("grant_type");
    seen.grants.push(kind);
    let granted;
    if (kind === "authorization_code") {
      const code = state.codes.get(asked.get("code"));
      state.codes.delete(asked.get("code"));
      const isSound =
        code?.client_id === id &&
        code.redirect_uri === asked.get("redirect_uri") &&
        code.resource === asked.get("resource") &&
        code.code_challenge === hash(asked.get("code_verifier") ?? "");
      seen.secrets.add(asked.get("code_verifier"));
      granted = isSound ? (code.scope ?? "") : undefined;
    } else if (kind === "refresh_token") {
      granted = state.refresh.get(asked.get("refresh_token"));
      state.refresh.delete(asked.get("refresh_token"));
    }
    // Repeats what it got, as careless servers do.
    if (granted === undefined) return { error: "invalid_grant", error_description: `no: ${asked}` };
    const [access_token, refresh_token] = [make("access"), make("refresh")];
    state.access.set(access_token, { scope: granted, ends: Date.now() + state.lifetime * 1000 });
    state.refresh.set(refresh_token, granted);
    return { access_token, token_type: "Bearer", expires_in: state.lifetime, refresh_token, scope: granted };
  }

  const answer = handshakeServer({
    "tools/list": () => ({ tools: [{ name: "whoami", inputSchema: { type: "object" } }] }),
    "tools/call": () => ({ content: [{ type: "text", text: "a person who agreed" }] }),
  });
  const server = await listen(async (request, response) => {
    const url = new URL(request.url, server.url);
    seen.requests.push(`${request.method} mcp ${url.pathname}`);
    if (request.method === "OPTIONS") return response.writeHead(204, CORS).end();
    const body = await text(request);
    if (interfere?.({ url, request, response, body })) return;
    if (url.pathname === "/.well-known/oauth-protected-resource/mcp")
      return json(response, 200, { resource: `${server.url}/mcp`, authorization_servers: [authorization.url] });
    if (url.pathname !== "/mcp") return response.writeHead(404, CORS).end();
    const metadata = `resource_metadata="${server.url}/.well-known/oauth-protected-resource/mcp"`;
    const refuse = (status, challenge) =>
      response.writeHead(status, { "www-authenticate": `Bearer ${challenge}${metadata}`, ...CORS }).end();
    const token = request.headers.authorization?.replace(/^Bearer /, "");
    const known = state.access.get(token);
    if (known === undefined || known.ends < Date.now()) return refuse(401, "");
    seen.tokens.add(token);
    if (request.method !== "POST") return response.writeHead(405, CORS).end();
    const message = JSON.parse(body);
    if (scope && message.method === "tools/call" && !known.scope.split(" ").includes(scope))
      return refuse(403, `error="insufficient_scope", scope="${scope}", `);
    const reply = await answer(message, {});
    return reply === undefined ? response.writeHead(202, CORS).end() : json(response, 200, reply);
  });

  return {
    url: `${server.url}/mcp`,
    issuer: authorization.url,
    seen,
    state,
    async stop() {
      await Promise.all([server.stop(), authorization.stop()]);
    },
  };
}

/** Plays the person in a program: opens the page, which sends it back, and follows it there. */
export async function followPage(url, { signal } = {}) {
  const { headers } = await fetch(url, { redirect: "manual", signal });
  return headers.get("location");
}
