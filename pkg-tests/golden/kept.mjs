// What is written beside sessions, in the temporary project of the packed package: how stores keep two conversations, and what a
// store of OAuth is given. Without an argument it prints each; what it prints is held against kept/. With a folder it opens what
// an older version wrote there, and fails where that does not go on.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { mcp } from "crablet";
import { durableObjectStore, extensionStore, fileStore } from "crablet/stores";
import { followPage, startOAuthServers } from "../lib/oauth-servers.mjs";
import { CONVERSATIONS, keepTwo } from "./conversations.mjs";

/** Small, so that a conversation takes several values and one is cut at a character of two units. */
const MAX_CHUNK = 37;
const locks = { request: (_name, work) => work() };
if (globalThis.navigator?.locks === undefined)
  Object.defineProperty(globalThis, "navigator", { value: { locks }, configurable: true });

/** What is done with the storage below each store: `fill` puts there what was kept, `kept` tells what is. */
const PLACES = {
  async "files.json"(use) {
    const folder = await mkdtemp(join(tmpdir(), "crablet-kept-"));
    try {
      await use(fileStore(folder), {
        async fill(files) {
          for (const [name, text] of Object.entries(files)) {
            await mkdir(dirname(join(folder, name)), { recursive: true });
            await writeFile(join(folder, name), text);
          }
        },
        async kept() {
          const entries = await readdir(folder, { recursive: true, withFileTypes: true });
          const names = entries
            .filter((entry) => entry.isFile())
            .map(({ parentPath, path, name }) => join(parentPath ?? path, name));
          const texts = names.map(async (name) => [name.slice(folder.length + 1), await readFile(name, "utf8")]);
          return Object.fromEntries((await Promise.all(texts)).sort());
        },
      });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
  "extension.json": (use) => {
    const records = new Map();
    const area = {
      get: async (keys) => Object.fromEntries([...records].filter(([key]) => keys === null || keys.includes(key))),
      set: async (items) => add(records, items),
      remove: async (keys) => {
        for (const key of keys) records.delete(key);
      },
    };
    return use(extensionStore(area, { maxChunk: MAX_CHUNK }), placeOf(records));
  },
  "durable-object.json": (use) => {
    const records = new Map();
    const transaction = {
      get: async (keys) => new Map([...records].filter(([key]) => keys.includes(key))),
      put: async (items) => add(records, items),
      delete: async (keys) => keys.filter((key) => records.delete(key)).length,
    };
    const list = async ({ prefix }) => new Map([...records].filter(([key]) => key.startsWith(prefix)));
    return use(durableObjectStore({ transaction: (work) => work(transaction), list }), placeOf(records));
  },
};

function add(records, items) {
  for (const [key, value] of Object.entries(items)) records.set(key, value);
}

function placeOf(records) {
  return {
    fill: async (kept) => add(records, kept),
    kept: async () => Object.fromEntries([...records].sort()),
  };
}

/** What an OAuth store is given for a server that a person agreed to, with what is made anew each time made the same. */
async function oauthKept() {
  const map = new Map();
  const servers = await startOAuthServers();
  try {
    const consent = { redirectUrl: "http://127.0.0.1:4999/callback", authorize: followPage };
    const client = await mcp.connect(mcp.http(servers.url, { auth: { consent, store: storeOn(map) } }));
    await client.callTool("whoami");
    await client.close();
  } finally {
    await servers.stop();
  }
  const { issuer } = JSON.parse(map.get(`server ${servers.url}`));
  const same = (text) =>
    text
      .replaceAll(servers.url, SERVER)
      .replaceAll(issuer, ISSUER)
      .replace(/planted-(\w+)-[\w-]+/g, "older-$1")
      .replace(/"expires_at":\d+/, '"expires_at":4102444800000');
  return Object.fromEntries([...map].map(([key, value]) => [same(key), same(value)]).sort());
}

const [SERVER, ISSUER] = ["https://mcp.example/mcp", "https://as.example"];

const storeOn = (map) => ({
  get: (key) => map.get(key),
  set: (key, value) => map.set(key, value),
  delete: (key) => map.delete(key),
});

/** The tokens that were kept open the server, are renewed once they have ended, and nobody is asked. */
async function oauthGoesOn(kept) {
  const seen = [];
  const server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const answer = (status, body) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const { authorization } = request.headers;
    if (request.url === "/.well-known/oauth-protected-resource/mcp")
      return answer(200, { resource: `${base}/mcp`, authorization_servers: [base] });
    if (request.url === "/.well-known/oauth-authorization-server")
      return answer(200, {
        issuer: base,
        authorization_endpoint: `${base}/authorize`,
        token_endpoint: `${base}/token`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["client_secret_basic"],
      });
    if (request.url === "/token") {
      const asked = new URLSearchParams(String(Buffer.concat(pieces)));
      assert.equal(asked.get("refresh_token"), "older-refresh");
      assert.equal(authorization, `Basic ${Buffer.from("client-0:older-secret").toString("base64")}`);
      return answer(200, { access_token: "renewed", token_type: "Bearer", expires_in: 3600 });
    }
    if (pieces.length === 0) return response.writeHead(405).end();
    seen.push(authorization);
    const { id, method, params } = JSON.parse(Buffer.concat(pieces));
    if (id === undefined) return response.writeHead(202).end();
    const serverInfo = { name: "s", version: "1" };
    const result =
      method === "initialize"
        ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo }
        : { content: [{ type: "text", text: "ok" }] };
    return answer(200, { jsonrpc: "2.0", id, result });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const base = `http://127.0.0.1:${server.address().port}`;
  try {
    for (const [expiresAt, token] of [
      ["4102444800000", "older-access"],
      ["1", "renewed"],
    ]) {
      const here = (text) =>
        text.replaceAll(SERVER, `${base}/mcp`).replaceAll(ISSUER, base).replaceAll("4102444800000", expiresAt);
      const map = new Map(Object.entries(kept).map(([key, value]) => [here(key), here(value)]));
      const consent = {
        redirectUrl: "http://127.0.0.1:4999/callback",
        authorize: () => assert.fail("a person was asked"),
      };
      const options = { auth: { consent, store: storeOn(map) }, era: "handshake" };
      const client = await mcp.connect(mcp.http(`${base}/mcp`, options));
      assert.equal((await client.callTool("x", {})).content[0].text, "ok");
      await client.close();
      assert.equal(seen.at(-1), `Bearer ${token}`);
    }
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const [older] = process.argv.slice(2);
if (older === undefined) {
  const print = (file, kept) =>
    console.log(JSON.stringify({ file: `kept/${file}`, text: `${JSON.stringify(kept, null, 2)}\n` }));
  for (const [file, at] of Object.entries(PLACES))
    await at(async (store, place) => {
      await keepTwo(store);
      print(file, await place.kept());
    });
  print("oauth.json", await oauthKept());
} else {
  for (const name of await readdir(older)) {
    // A version of a file is `NAME-2.json`, the first one `NAME.json`.
    const at = PLACES[name.replace(/-\d+(?=\.json$)/, "")];
    const kept = JSON.parse(await readFile(join(older, name), "utf8"));
    if (name.startsWith("oauth")) await oauthGoesOn(kept);
    else if (at !== undefined)
      await at(async (store, place) => {
        await place.fill(kept);
        await goesOn(store);
      });
    else continue;
    console.log(name);
  }
}

async function goesOn(store) {
  assert.deepEqual(await store.list(), Object.keys(CONVERSATIONS).sort());
  for (const [id, { version, entries }] of Object.entries(CONVERSATIONS)) {
    assert.deepEqual(await store.read(id), { version, entries });
    assert.equal(await store.append(id, version, ["more"]), version + 1);
    assert.deepEqual(await store.read(id), { version: version + 1, entries: [...entries, "more"] });
  }
}
