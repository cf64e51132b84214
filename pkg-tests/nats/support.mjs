// Shims on a real nats-server, for the tests of this folder. The program comes from the variable CRABLET_SHIM_NATS.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { run, startServer } from "../lib/process.mjs";

const folder = dirname(fileURLToPath(import.meta.url));

/** A folder that is removed when the test is over. */
export async function temporaryFolder(test) {
  const made = await mkdtemp(join(tmpdir(), "crablet-nats-test-"));
  test.after(() => rm(made, { recursive: true, force: true }));
  return made;
}

/** Starts something that has a `stop`, and stops it when the test is over. */
export async function stopping(test, starting) {
  const started = await starting;
  test.after(() => started.stop());
  return started;
}

/** The servers `stateless` and `handshake`, which write into the ledger of a folder. */
export function servers(where) {
  const server = (era) => ({
    command: process.execPath,
    args: [join(folder, "stdio-server.mjs"), era, join(where, "ledger")],
  });
  return { stateless: server("stateless"), handshake: server("handshake") };
}

/** The numbers in a folder's ledger. */
export async function ledger(where) {
  const text = await readFile(join(where, "ledger"), "utf8").catch(() => "");
  return text.split("\n").filter(Boolean).map(Number);
}

/**
 * A shim that serves both servers over NATS.
 *
 * @param {{ url: string, where: string, name?: string, flags?: string[], env?: Record<string, string> }} options `where` is a
 *   folder for its state and the ledger
 */
export async function startNatsShim({ where, name = "shim", env = {}, ...rest }) {
  const args = ["serve", "--port", "0", ...(await flagsOf({ where, name, ...rest }))];
  const options = { ready: /listens on/, env: { CRABLET_STATE_DIR: join(where, name), ...env } };
  return await startServer(process.env.CRABLET_SHIM_NATS, args, options);
}

/** What `crablet-shim doctor` says of a set-up, which takes the options of `startNatsShim`. */
export async function doctor({ where, env = {}, ...rest }) {
  const args = ["doctor", "--port", "0", ...(await flagsOf({ where, name: "doctor", ...rest }))];
  const options = { env: { CRABLET_STATE_DIR: join(where, "doctor"), ...env } };
  return await run(process.env.CRABLET_SHIM_NATS, args, options).then(
    (report) => ({ isHealthy: true, report }),
    // Without the first line, which is the command.
    ({ message }) => ({ isHealthy: false, report: message.slice(message.indexOf("\n") + 1) }),
  );
}

/** The configuration file of both servers, and the flags that serve them over NATS. */
async function flagsOf({ url, where, name, flags = [] }) {
  const config = join(where, `${name}.json`);
  await writeFile(config, JSON.stringify({ mcpServers: servers(where) }));
  const served = ["--nats-server", "stateless", "--nats-server", "handshake"];
  return ["--config", config, "--nats", url, ...served, ...flags];
}

/** What a shim says that does not come up. */
export async function failureOf(starting) {
  return await starting.then(
    () => {
      throw new Error("the shim came up");
    },
    (error) => error.message,
  );
}

/** A JSON-RPC request. */
export const request = (id, method, params = {}) => JSON.stringify({ jsonrpc: "2.0", id, method, params });

/** A call of a tool. */
export const call = (id, name, input = {}) => request(id, "tools/call", { name, arguments: input });

/** Publishes a request to a subject that answers with more than one message, and gives them as they come. */
export async function* exchange(connection, subject, body) {
  const reply = `_INBOX.${crypto.randomUUID()}`;
  const subscription = connection.subscribe(reply);
  connection.publish(subject, body, { reply });
  try {
    for await (const message of subscription) {
      const event = message.headers?.get("Crablet-Event") ?? "";
      const text = message.string();
      yield {
        reply,
        event,
        code: message.headers?.code,
        session: message.headers?.get("Crablet-Session"),
        body: text === "" ? undefined : JSON.parse(text),
      };
    }
  } finally {
    subscription.unsubscribe();
  }
}

/** Makes a key and a certificate for 127.0.0.1, by a certificate authority of its own. */
export async function makeCertificates(where) {
  const at = (name) => join(where, name);
  const openssl = (...args) => run("openssl", args);
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  await openssl("req", "-x509", ...key, "-keyout", at("ca.key"), "-out", at("ca.pem"), "-subj", "/CN=crablet test");
  for (const name of ["server", "client"]) {
    await openssl(
      "req",
      ...key.slice(0, -2),
      "-keyout",
      at(`${name}.key`),
      "-out",
      at(`${name}.csr`),
      "-subj",
      `/CN=${name}`,
    );
    await writeFile(at(`${name}.ext`), "subjectAltName=IP:127.0.0.1,DNS:localhost\n");
    const by = ["-CA", at("ca.pem"), "-CAkey", at("ca.key"), "-CAcreateserial", "-days", "2"];
    await openssl(
      "x509",
      "-req",
      "-in",
      at(`${name}.csr`),
      ...by,
      "-extfile",
      at(`${name}.ext`),
      "-out",
      at(`${name}.pem`),
    );
  }
  return {
    ca: at("ca.pem"),
    cert: at("server.pem"),
    key: at("server.key"),
    clientCert: at("client.pem"),
    clientKey: at("client.key"),
  };
}

/** Waits until the NATS server knows of just so many shims that serve a server: it learns a little later that one was killed. */
export async function servedBy(connection, server, count) {
  for (;;) {
    let found = 0;
    try {
      const options = { strategy: "timer", maxWait: 200 };
      for await (const _ of await connection.requestMany(`$SRV.PING.${server}`, "", options)) found += 1;
    } catch {
      // Nobody is there.
    }
    if (found === count) return;
  }
}
