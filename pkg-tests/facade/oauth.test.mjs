// OAuth from Node, against an authorization server and an MCP server over HTTP.
import assert from "node:assert/strict";
import { inspect } from "node:util";
import { test } from "node:test";
import { Agent, mcp } from "crablet";
import { loopback } from "crablet/oauth";
import { scriptedModel } from "crablet/test";
import { followPage, startOAuthServers } from "../lib/oauth-servers.mjs";
import { collect } from "./support.mjs";

const consent = { redirectUrl: "http://127.0.0.1:4999/callback", authorize: followPage };

async function withServers(options, use) {
  const servers = await startOAuthServers(options);
  try {
    return await use(servers);
  } finally {
    await servers.stop();
  }
}

/** A store that can be looked into. */
function mapStore() {
  const map = new Map();
  return {
    map,
    get: (key) => map.get(key),
    set: (key, value) => map.set(key, value),
    delete: (key) => map.delete(key),
  };
}

const texts = ({ content }) => content.map(({ text }) => text);

test("a person agrees once, and all calls go on", () =>
  withServers({}, async ({ url, seen }) => {
    const client = await mcp.connect(mcp.http(url, { auth: { consent, clientName: "the test" } }));
    const results = await Promise.all([1, 2, 3].map(() => client.callTool("whoami")));
    assert.deepEqual(results.map(texts), Array(3).fill(["a person who agreed"]));
    assert.deepEqual(seen.grants, ["authorization_code"]);
    assert.equal(seen.authorizations.length, 1);
    const [{ client_name, redirect_uris, application_type }] = seen.registrations;
    assert.deepEqual([client_name, redirect_uris, application_type], ["the test", [consent.redirectUrl], "native"]);
    await client.close();
  }));

test("the browser of whoever runs the program comes back to a port of this machine", () =>
  withServers({}, async ({ url, seen }) => {
    const visits = [];
    const open = async (page) => {
      const back = await followPage(page);
      // Somebody else reaches the port first.
      const stranger = await fetch(new URL("/callback?code=x&state=y", back));
      visits.push(stranger.status);
      fetch(back).then(async (response) => visits.push(response.status, await response.text()));
    };
    const client = await mcp.connect(mcp.http(url, { auth: { consent: loopback({ open, message: "Bye." }) } }));
    assert.deepEqual(texts(await client.callTool("whoami")), ["a person who agreed"]);
    assert.deepEqual(visits.slice(0, 1), [404]);
    const { hostname, pathname } = new URL(seen.authorizations[0].redirect_uri);
    assert.deepEqual([hostname, pathname], ["127.0.0.1", "/callback"]);
    await assert.rejects(fetch(seen.authorizations[0].redirect_uri), "the port is closed again");
    await client.close();
  }));

test("more scopes are asked for when a call needs them", () =>
  withServers({ scope: "write" }, async ({ url, seen }) => {
    const client = await mcp.connect(mcp.http(url, { auth: { consent, scopes: ["read"] } }));
    assert.deepEqual(texts(await client.callTool("whoami")), ["a person who agreed"]);
    assert.deepEqual(
      seen.authorizations.map(({ scope }) => scope),
      ["read", "write read"],
    );
    await client.close();
  }));

test("tokens end and are renewed, each refresh token once, and the person is not asked again", () =>
  // Shorter than the margin before the end, so that each request renews.
  withServers({ lifetime: 5 }, async ({ url, seen }) => {
    const client = await mcp.connect(mcp.http(url, { auth: { consent } }));
    for (let call = 0; call < 3; call += 1) assert.equal(texts(await client.callTool("whoami")).length, 1);
    assert.equal(seen.authorizations.length, 1);
    assert.ok(seen.grants.filter((grant) => grant === "refresh_token").length >= 3, String(seen.grants));
    await client.close();
  }));

test("a store lets the next connection in without a person, and holds tokens by issuer and resource", () =>
  withServers({}, async ({ url, seen }) => {
    const store = mapStore();
    const first = await mcp.connect(mcp.http(url, { auth: { consent, store } }));
    await first.close();
    const second = await mcp.connect(mcp.http(url, { auth: { store } }));
    assert.deepEqual(texts(await second.callTool("whoami")), ["a person who agreed"]);
    await second.close();
    assert.equal(seen.authorizations.length, 1);
    const kinds = [...store.map.keys()].map((key) => key.split(" ")[0]).sort();
    assert.deepEqual(kinds, ["client", "server", "tokens"]);
    const key = [...store.map.keys()].find((key) => key.startsWith("tokens "));
    assert.ok(key.endsWith(` ${url}`) && key.split(" ").length === 3, key);
  }));

test("without a way to ask, and when the person says no, connecting fails with kind auth", () =>
  withServers({}, async ({ url, seen }) => {
    await assert.rejects(mcp.connect(mcp.http(url, { auth: {} })), ({ kind }) => kind === "auth");
    const denies = { ...consent, authorize: () => Promise.reject(new Error("I would rather not")) };
    await assert.rejects(
      mcp.connect(mcp.http(url, { auth: { consent: denies } })),
      ({ kind, message }) => kind === "auth" && message.includes("I would rather not"),
    );
    const forges = { ...consent, authorize: async (page) => `${await followPage(page)}x` };
    await assert.rejects(mcp.connect(mcp.http(url, { auth: { consent: forges } })), ({ kind }) => kind === "auth");
    assert.deepEqual(seen.grants, []);
    await assert.rejects(
      mcp.connect(mcp.http(url, { auth: { grant: "client-credentials" } })),
      ({ kind }) => kind === "invalid-input",
    );
  }));

test("a signal that aborts while the person decides closes the page", () =>
  withServers({}, async ({ url }) => {
    const controller = new AbortController();
    const asked = [];
    const waits = {
      ...consent,
      authorize: (_page, { signal }) => {
        asked.push(signal);
        controller.abort();
        return new Promise(() => {});
      },
    };
    const connecting = mcp.connect(mcp.http(url, { auth: { consent: waits } }), { signal: controller.signal });
    await assert.rejects(connecting, { name: "AbortError" });
    if (!asked[0].aborted) await new Promise((resolve) => asked[0].addEventListener("abort", resolve));
  }));

test("an agent's events and its saved session hold no token", () =>
  withServers({}, async ({ url, seen }) => {
    const model = scriptedModel([
      ({ tools }) => [{ type: "tool-call", toolName: tools[0].name, input: {} }],
      ({ messages }) => messages.at(-1).content[0].content[0].text,
    ]);
    const agent = new Agent({ model, mcpServers: { safe: mcp.http(url, { auth: { consent } }) } });
    const session = agent.session();
    const events = await collect(session.send("who am I?"));
    assert.equal(events.at(-1).text, "a person who agreed");
    const printed = JSON.stringify([events, session, session.getState()]) + inspect([agent, session], { depth: 10 });
    assert.ok(seen.secrets.size >= 4);
    for (const secret of seen.secrets) assert.ok(!printed.includes(secret), secret);
    await agent.close();
  }));

test("no token, code or secret is in an error or an event", () =>
  withServers({}, async ({ url, seen, state }) => {
    const printed = [];
    const print = (value) => printed.push(inspect(value, { depth: 10 }), JSON.stringify(value) ?? "", String(value));
    const broken = { ...consent, redirectUrl: "http://127.0.0.1:4999/callback" };
    const onEvent = print;
    const client = await mcp.connect(mcp.http(url, { onEvent, auth: { consent: broken } }));
    await client.callTool("whoami").then(print, print);
    // The server forgets everything, and repeats what it refuses.
    state.access.clear();
    state.refresh.clear();
    state.codes.set = () => state.codes;
    await assert.rejects(client.callTool("whoami"), (error) => {
      print(error);
      return error.kind === "auth" && error.code === "invalid_grant" && /\[redacted\]/.test(error.message);
    });
    await client.close();
    assert.ok(seen.secrets.size >= 6);
    for (const secret of seen.secrets) assert.ok(!printed.join("\n").includes(secret), secret);
  }));
