// Credentials of NATS, planted in each way to give them to the shim and to connections of both clients: none is in what the shim says,
// in an error, an event, a span, a snapshot or a store.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { jetstream } from "@nats-io/jetstream";
import { createUser } from "@nats-io/nkeys";
import { connect } from "@nats-io/transport-node";
import { Agent, mcp } from "crablet";
import { agentClient, natsStore, serveAgent } from "crablet/agent-service";
import { nats } from "crablet/nats";
import { memoryStore } from "crablet/stores";
import { scriptedModel } from "crablet/test";
import { trace } from "crablet/trace";
import { findsNothing, leakIn, plainPlanted, planted } from "../lib/planted.mjs";
import { startNats } from "../lib/nats-server.mjs";
import { run } from "../lib/process.mjs";
import { call, doctor, failureOf, startNatsShim, stopping, temporaryFolder } from "./support.mjs";

const PASSWORD = planted("password");
const TOKEN = planted("token");
const quoted = (text) => JSON.stringify(text);

/** Every way to give the shim a credential, right or wrong: flags and variables, by what it is. */
async function waysIn(where) {
  const file = async (name, text) => {
    await writeFile(join(where, name), text);
    return join(where, name);
  };
  const seed = new TextDecoder().decode(createUser().getSeed());
  const creds = `-----BEGIN NATS USER JWT-----\n${plainPlanted("jwt")}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`;
  return {
    seed,
    ways: {
      "a password in a file": { flags: ["--nats-user", "shim", "--nats-password-file", await file("p", PASSWORD)] },
      "a password in a variable": { flags: ["--nats-user", "shim"], env: { CRABLET_NATS_PASSWORD: PASSWORD } },
      "a token in a file": { flags: ["--nats-token-file", await file("t", TOKEN)] },
      "a token in a variable": { env: { CRABLET_NATS_TOKEN: TOKEN } },
      "a seed": { flags: ["--nats-nkey", await file("seed", seed)] },
      "a seed that is none": { flags: ["--nats-nkey", await file("noseed", plainPlanted("seed"))] },
      credentials: { flags: ["--nats-creds", await file("creds", creds)] },
      "credentials that are none": { flags: ["--nats-creds", await file("nocreds", planted("creds"))] },
      "credentials whose seed is none": {
        flags: ["--nats-creds", await file("halfcreds", creds.replace(seed, plainPlanted("seed")))],
      },
    },
  };
}

test("the shim shows no credential, let in or not, at work, when the NATS server goes, and in the doctor", async (t) => {
  const where = await temporaryFolder(t);
  const { seed, ways } = await waysIn(where);
  const said = [];
  const see = (place, text) => said.push([place, text]);
  const refusing = await stopping(t, startNats({ config: "authorization { user: other, password: other }" }));
  for (const [what, way] of Object.entries(ways)) {
    see(what, await failureOf(startNatsShim({ url: refusing.url, where, ...way })));
    see(`doctor, ${what}`, (await doctor({ url: refusing.url, where, ...way })).report);
  }
  for (const address of [`shim:${encodeURIComponent(PASSWORD)}@`, `${plainPlanted("token")}@`]) {
    const url = refusing.url.replace("//", `//${address}`);
    see("an address", await failureOf(startNatsShim({ url, where })));
    see(
      "an address in a variable",
      await failureOf(
        startNatsShim({ url: refusing.url, where, env: { CRABLET_NATS_URL: url }, flags: ["--nats-prefix", "a..b"] }),
      ),
    );
    for (const command of ["serve", "doctor"])
      see(
        "the help",
        await run(process.env.CRABLET_SHIM_NATS, [command, "--help"], { env: { CRABLET_NATS_URL: url } }),
      );
    see("doctor, an address", (await doctor({ url, where })).report);
  }
  for (const [config, what, client] of [
    [
      `authorization { user: shim, password: ${quoted(PASSWORD)} }`,
      "a password in a file",
      { user: "shim", pass: PASSWORD },
    ],
    [`authorization { token: ${quoted(TOKEN)} }`, "a token in a variable", { token: TOKEN }],
  ]) {
    const server = await startNats({ config });
    const shim = await stopping(t, startNatsShim({ url: server.url, where, ...ways[what] }));
    const connection = await connect({ servers: server.url, ...client });
    const answer = await connection.request("mcp.stateless", call(1, "mark", { n: 1 }), { timeout: 60_000 });
    assert.match(answer.string(), /marked 1/, "the credential is right");
    see("an answer", answer.string());
    const { isHealthy, report } = await doctor({ url: server.url, where, ...ways[what] });
    assert.ok(isHealthy, report);
    see("doctor", report);
    await connection.close();
    await server.kill();
    while (!/connection to the NATS server is lost/.test(shim.output()))
      await new Promise((resolve) => setTimeout(resolve, 20));
    await shim.stop();
    see("a shim at work", shim.output());
  }
  assert.ok(said.length > 20);
  for (const [place, text] of said) {
    const leak = leakIn(text) ?? (text.includes(seed) || text.includes(seed.slice(8, 40)) ? text : undefined);
    assert.equal(leak, undefined, place);
  }
});

test("neither client shows the credential of its connection, whatever fails", async (t) => {
  const where = await temporaryFolder(t);
  const config = `max_payload: 65536\nauthorization { users = [
    { user: shim, password: s }
    { user: some, password: ${quoted(PASSWORD)}, permissions: { publish: { deny: ["no.>"] } } } ] }`;
  const server = await stopping(t, startNats({ config }));
  const shimAccess = { flags: ["--nats-user", "shim"], env: { CRABLET_NATS_PASSWORD: "s" } };
  await stopping(t, startNatsShim({ url: server.url, where, ...shimAccess }));
  const open = async () => await connect({ servers: server.url, user: "some", pass: PASSWORD });
  await findsNothing("the clients", async (see) => {
    const connection = await open();
    const attempt = (what, work) =>
      work.then(
        () => assert.fail(what),
        (error) => see(what, error),
      );
    const options = { onEvent: (event) => see("event", event) };
    const server = (name, more) => nats({ connection, server: name, ...options, ...more });
    await attempt("nobody serves", mcp.connect(server("none")));
    await attempt("not permitted", mcp.connect(server("files", { prefix: "no" })));
    // An agent whose tool fails, as a model and a trace see it.
    const spans = [];
    const store = memoryStore();
    const model = scriptedModel([
      [{ type: "tool-call", callId: "1", toolName: "files__big", input: { bytes: 70_000 } }],
      "Too large.",
    ]);
    const agent = new Agent({
      model,
      mcpServers: { files: server("stateless") },
      onEvent: trace((span) => spans.push(span), { content: true }),
    });
    const session = await agent.open("s", store);
    const events = [];
    for await (const event of session.send("hi")) events.push(event);
    assert.match(JSON.stringify(events), /max_payload/, "the tool failed");
    see("events", events);
    see("spans", spans);
    see("snapshot", session.toJSON());
    see("store", await store.read("s"));
    await agent.close();

    const stream = jetstream(connection);
    const service = await serveAgent({
      connection,
      jetstream: stream,
      name: "agent",
      agent: new Agent({
        model: async function* () {
          yield "Hello.";
        },
      }),
    });
    const remote = agentClient({ connection, jetstream: stream, name: "agent", patienceMs: 200 }).session("s");
    for await (const placed of remote.run("hi")) see("event of the service", placed);
    see("sessions", await natsStore({ connection, jetstream: stream, bucket: "crablet_agent_sessions" }).read("s"));
    await attempt("a long input", remote.prompt("x".repeat(70_000)));
    const denied = agentClient({ connection, jetstream: stream, name: "agent", prefix: "no", patienceMs: 200 });
    await attempt("an input that is not permitted", denied.session("s").prompt("hi"));
    await service.stop({ drainMs: 0 });

    const client = await mcp.connect(server("stateless"));
    const hanging = client.callTool("hang", {});
    await client.callTool("pid", {});
    await Promise.all([attempt("a connection that is closed", hanging), connection.close()]);
    await attempt("a call on it", client.callTool("pid", {}));
    await attempt("an input on it", remote.prompt("hi"));
  });
});
