// Tokens, codes, verifiers, states and client secrets of a person's authorization, against servers that repeat all they get and
// send requests elsewhere: none is in an error, an event or the console, and none reaches another origin.
import assert from "node:assert/strict";
import { test } from "node:test";
import { text } from "node:stream/consumers";
import { CrabletError, mcp } from "crablet";
import { followPage, startOAuthServers } from "../lib/oauth-servers.mjs";
import { formsOf, shown } from "../lib/planted.mjs";
import { listen } from "../lib/servers.mjs";

const REDIRECTS = [301, 302, 303, 307, 308];
/** As much of a secret as a shortened text may end in. */
const START = 12;

const consent = { redirectUrl: "http://127.0.0.1:4999/callback", authorize: followPage };
const json = (response, status, body) =>
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));

/** Everything that the client must keep to itself so far. */
const secretsOf = (seen) => [...seen.secrets, ...seen.authorizations.map(({ state }) => state)].filter(Boolean);

function shows(secrets, text) {
  return secrets.find(
    (secret) =>
      formsOf(secret).some((form) => text.includes(form)) ||
      text.includes(secret.slice(0, START + secret.indexOf("-", 8) + 1)),
  );
}

/** Connects and calls twice, the second time with a token that has to be renewed; gives all that can be seen of it. */
async function use(url, store) {
  const seen = [];
  const see = (value) => seen.push(shown(value));
  const methods = ["debug", "error", "info", "log", "warn"];
  const own = Object.fromEntries(methods.map((method) => [method, console[method]]));
  for (const method of methods) console[method] = (...values) => values.forEach(see);
  let failure;
  try {
    const client = await mcp.connect(mcp.http(url, { onEvent: see, auth: { consent, store } }));
    try {
      await client.callTool("whoami");
      await client.callTool("whoami");
    } finally {
      see(client);
      await client.close();
    }
  } catch (error) {
    failure = error;
    see(error);
  } finally {
    Object.assign(console, own);
  }
  return { text: seen.join("\n"), failure };
}

/** What is asked for, by the name that the tests have for it. */
function placeOf({ url, request, body }) {
  if (url.pathname === "/token") return new URLSearchParams(body).get("grant_type");
  if (url.pathname === "/mcp" && body.includes('"tools/call"')) return "a call";
  return request.headers.authorization?.startsWith("Bearer ") ? "the server" : url.pathname;
}

const PLACES = ["authorization_code", "refresh_token", "a call", "the server"];
const METADATA = ["/register", "/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/mcp"];

/** What a request carried, as it came and decoded. */
function repeated({ request, body }) {
  const parts = [...new URLSearchParams(body).values()];
  const [scheme, credentials = ""] = (request.headers.authorization ?? "").split(" ");
  parts.push(credentials);
  if (scheme === "Basic")
    parts.push(...Buffer.from(credentials, "base64").toString().split(":").map(decodeURIComponent));
  return `refused ${parts.filter((part) => part.length > 8).join(" ")} ${body}`;
}

const REFUSALS = {
  "a refusal": (asked) => json(asked.response, 400, { error: "invalid_grant", error_description: repeated(asked) }),
  "a refusal in its code": (asked) => json(asked.response, 400, { error: repeated(asked) }),
  "a refusal that is shortened": (asked) =>
    json(asked.response, 400, { error: "no", error_description: repeated(asked).slice(0, 40) }),
  "a failure as a page": ({ response, ...asked }) =>
    response.writeHead(500, { "content-type": "text/html" }).end(`<p>${repeated(asked)}</p>`),
  "an error of JSON-RPC": (asked) => {
    const id = asked.body.startsWith("{") ? JSON.parse(asked.body).id : 1;
    return json(asked.response, 200, { jsonrpc: "2.0", id, error: { code: -32600, message: repeated(asked) } });
  },
  "an answer that is none": ({ response, ...asked }) =>
    response.writeHead(200, { "content-type": "application/json" }).end(`{${repeated(asked)}`),
};

for (const place of PLACES) {
  test(`nothing shows when ${place} is refused by a server that repeats it`, async () => {
    for (const [what, refuse] of Object.entries(REFUSALS)) {
      let refused = 0;
      const interfere = (asked) => {
        if (placeOf(asked) !== place) return false;
        refused += 1;
        refuse(asked);
        return true;
      };
      const servers = await startOAuthServers({ interfere, lifetime: place === "refresh_token" ? 5 : 3600 });
      try {
        const { text, failure } = await use(servers.url);
        assert.ok(refused > 0, `${what}: nothing was refused`);
        // An authorization server that does not renew is asked for a new token by way of the person.
        if (place !== "refresh_token") assert.ok(CrabletError.is(failure), `${what}: ${failure}`);
        const secrets = secretsOf(servers.seen);
        assert.ok(secrets.length >= 3, `${what}: ${secrets.length} secrets`);
        const leak = shows(secrets, text);
        assert.equal(leak, undefined, `${what}: ${text.slice(0, 1000)}`);
      } finally {
        await servers.stop();
      }
    }
  });
}

test("no redirect takes a token, a code or a secret to another origin", async () => {
  const taken = [];
  const stranger = await listen(async (request, response) => {
    const body = await text(request);
    taken.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)} ${body}`);
    json(response, 200, {});
  });
  try {
    for (const place of [...PLACES, ...METADATA]) {
      for (const status of REDIRECTS) {
        for (const host of ["127.0.0.1", "localhost"]) {
          taken.length = 0;
          let redirected = 0;
          const interfere = (asked) => {
            if (placeOf(asked) !== place) return false;
            redirected += 1;
            const location = `${stranger.url.replace("127.0.0.1", host)}${asked.url.pathname}`;
            asked.response.writeHead(status, { location }).end();
            return true;
          };
          const servers = await startOAuthServers({ interfere, lifetime: place === "refresh_token" ? 5 : 3600 });
          try {
            const { text } = await use(servers.url);
            assert.ok(redirected > 0, `${status} of ${place}: nothing was redirected`);
            assert.deepEqual(taken, [], `${status} of ${place}: the other origin was asked`);
            assert.equal(shows(secretsOf(servers.seen), text), undefined, `${status} of ${place}`);
          } finally {
            await servers.stop();
          }
        }
      }
    }
  } finally {
    await stranger.stop();
  }
});

test("an authorization that a person comes back from with an error shows neither its state nor its verifier", async () => {
  const servers = await startOAuthServers({});
  try {
    const seen = [];
    const authorize = async (page) => {
      const { state } = Object.fromEntries(new URL(page).searchParams);
      const back = new URL(consent.redirectUrl);
      const words = {
        error: `denied-${state}`,
        error_description: `not with ${state}`,
        state,
        iss: new URL(page).origin,
      };
      for (const [name, value] of Object.entries(words)) back.searchParams.set(name, value);
      seen.push(state);
      return back;
    };
    const connecting = mcp.connect(mcp.http(servers.url, { auth: { consent: { ...consent, authorize } } }));
    const error = await connecting.then(assert.fail, (thrown) => thrown);
    assert.equal(error.kind, "auth");
    assert.equal(shows(seen, shown(error)), undefined, shown(error));
  } finally {
    await servers.stop();
  }
});
