// Who the shim is to a NATS server, and what a user may be allowed: users, tokens, nkeys, credentials, TLS, permissions.
import assert from "node:assert/strict";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createAccount, createOperator, createUser, fromSeed } from "@nats-io/nkeys";
import { connect } from "@nats-io/transport-node";
import { mcp } from "crablet";
import { nats } from "crablet/nats";
import { startNats } from "../lib/nats-server.mjs";
import { call, failureOf, makeCertificates, startNatsShim, stopping, temporaryFolder } from "./support.mjs";

/** A file that only its owner reads. */
async function secret(where, name, text) {
  const file = join(where, name);
  await writeFile(file, `${text}\n`);
  await chmod(file, 0o600);
  return file;
}

/** Whether a shim with these flags serves, to a client with these options. */
async function serves(server, where, { flags = [], env, client = {} }) {
  const url = client.tls ? server.url.replace("nats:", "tls:") : server.url;
  const shim = await startNatsShim({ url, where, flags, env });
  const connection = await connect({ servers: server.url, ...client });
  try {
    const answer = await connection.request("mcp.stateless", call(1, "mark", { n: 1 }), { timeout: 60_000 });
    assert.equal(answer.json().result.content[0].text, "marked 1");
    return shim.output();
  } finally {
    await connection.close();
    await shim.stop();
  }
}

test("a user with a password, from a file or the environment", async (t) => {
  const where = await temporaryFolder(t);
  const config = "authorization { user: crab, password: pinch-9361 }";
  const server = await stopping(t, startNats({ config }));
  const client = { user: "crab", pass: "pinch-9361" };
  const file = await secret(where, "password", "pinch-9361");
  const output = await serves(server, where, {
    flags: ["--nats-user", "crab", "--nats-password-file", file],
    client,
  });
  assert.doesNotMatch(output, /pinch/);
  await serves(server, where, {
    flags: ["--nats-user", "crab"],
    env: { CRABLET_NATS_PASSWORD: "pinch-9361" },
    client,
  });

  const refused = await failureOf(startNatsShim({ url: server.url, where }));
  assert.match(refused, /no connection to the NATS server.*authorization/i);
  const env = { CRABLET_NATS_PASSWORD: "wrong-5150" };
  const wrong = await failureOf(startNatsShim({ url: server.url, where, flags: ["--nats-user", "crab"], env }));
  assert.match(wrong, /no connection to the NATS server/);
  assert.doesNotMatch(wrong, /wrong-5150/);
  const alone = await failureOf(startNatsShim({ url: server.url, where, flags: ["--nats-user", "crab"] }));
  assert.match(alone, /--nats-password-file/);
});

test("a token, and the seed of an nkey", async (t) => {
  const where = await temporaryFolder(t);
  const withToken = await stopping(t, startNats({ config: "authorization { token: claw-7731 }" }));
  const token = await secret(where, "token", "claw-7731");
  const client = { token: "claw-7731" };
  await serves(withToken, where, { flags: ["--nats-token-file", token], client });
  await serves(withToken, where, { env: { CRABLET_NATS_TOKEN: "claw-7731" }, client });

  const { nkeyAuthenticator } = await import("@nats-io/nats-core");
  const pair = createUser();
  const users = `authorization { users = [ { nkey: ${pair.getPublicKey()} } ] }`;
  const withKey = await stopping(t, startNats({ config: users }));
  const seed = await secret(where, "seed", new TextDecoder().decode(pair.getSeed()));
  await serves(withKey, where, {
    flags: ["--nats-nkey", seed],
    client: { authenticator: nkeyAuthenticator(pair.getSeed()) },
  });
});

test("a credentials file of an account", async (t) => {
  const where = await temporaryFolder(t);
  const { credsAuthenticator } = await import("@nats-io/nats-core");
  const [operator, account, user] = [createOperator(), createAccount(), createUser()];
  const limits = { subs: -1, data: -1, payload: -1 };
  const operatorToken = token(operator, operator, { type: "operator", version: 2 });
  const accountToken = token(operator, account, {
    limits: { ...limits, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 },
    type: "account",
    version: 2,
  });
  const userToken = token(account, user, { ...limits, pub: {}, sub: {}, type: "user", version: 2 });
  const config = `operator: ${operatorToken}\nresolver: MEMORY\nresolver_preload: { ${account.getPublicKey()}: ${accountToken} }`;
  const server = await stopping(t, startNats({ config, jetstream: false }));
  const part = (name, text) => `-----BEGIN ${name}-----\n${text}\n------END ${name}------\n`;
  const seed = new TextDecoder().decode(user.getSeed());
  const text = part("NATS USER JWT", userToken) + part("USER NKEY SEED", seed);
  const file = await secret(where, "shim.creds", text);
  const client = { authenticator: credsAuthenticator(new TextEncoder().encode(text)) };
  await serves(server, where, { flags: ["--nats-creds", file], client });
  const missing = await failureOf(startNatsShim({ url: server.url, where, flags: ["--nats-creds", "/no/such/file"] }));
  assert.match(missing, /\/no\/such\/file cannot be used/);
});

/** A JWT as NATS has them. */
function token(issuer, subject, claims) {
  const encode = (bytes) => Buffer.from(bytes).toString("base64url");
  const body = {
    jti: "test",
    iat: 1_700_000_000,
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    name: "test",
    nats: claims,
  };
  const signed = [{ typ: "JWT", alg: "ed25519-nkey" }, body].map((part) => encode(JSON.stringify(part))).join(".");
  return `${signed}.${encode(fromSeed(issuer.getSeed()).sign(new TextEncoder().encode(signed)))}`;
}

test("TLS with an authority of one's own, and certificates on both sides", async (t) => {
  const where = await temporaryFolder(t);
  const { ca, cert, key, clientCert, clientKey } = await makeCertificates(where);
  const tls = (more) => `tls { cert_file: "${cert}", key_file: "${key}"${more} }`;
  const server = await stopping(t, startNats({ config: tls("") }));
  const flags = ["--nats-ca", ca];
  await serves(server, where, { flags, client: { tls: { caFile: ca } } });
  const unknown = await failureOf(startNatsShim({ url: server.url.replace("nats:", "tls:"), where }));
  assert.match(unknown, /no connection to the NATS server/);

  const strict = await stopping(t, startNats({ config: tls(`, ca_file: "${ca}", verify: true`) }));
  const shown = [...flags, "--nats-cert", clientCert, "--nats-key", clientKey];
  const client = { tls: { caFile: ca, certFile: clientCert, keyFile: clientKey } };
  await serves(strict, where, { flags: shown, client });
  const bare = await failureOf(startNatsShim({ url: strict.url.replace("nats:", "tls:"), where, flags }));
  assert.match(bare, /no connection to the NATS server/);
});

test("the permissions of the guide are enough, and keep a user out of what is not named", async (t) => {
  const where = await temporaryFolder(t);
  const config = `authorization { users = [
    { user: shim, password: s, permissions: {
      subscribe: ["mcp.stateless", "mcp.stateless.>", "mcp.handshake", "mcp.handshake.>", "$SRV.>", "_INBOX.>"]
      publish: ["_INBOX.>", "_INBOX_page.>"] } }
    { user: page, password: p, permissions: {
      publish: ["mcp.handshake", "mcp.handshake.stream", "mcp.handshake.cancel", "mcp.handshake.session.>"]
      subscribe: ["_INBOX_page.>"] } }
  ] }`;
  const server = await stopping(t, startNats({ config }));
  const env = { CRABLET_NATS_PASSWORD: "s" };
  await stopping(t, startNatsShim({ url: server.url, where, flags: ["--nats-user", "shim"], env }));
  const connection = await connect({ servers: server.url, user: "page", pass: "p" });
  t.after(() => connection.close());
  const open = (name, options) =>
    mcp.connect(nats({ connection, server: name, inboxPrefix: "_INBOX_page", silenceMs: 2_000, ...options }));
  for (const era of ["stateless", "handshake"]) {
    const client = await open("handshake", { era });
    assert.equal((await client.callTool("count", {})).content[0].text, "1");
    await client.close();
  }
  await assert.rejects(open("stateless"), { kind: "auth", message: /publish to mcp\.stateless\.stream/ });
});
