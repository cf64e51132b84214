// A client with the permissions that docs/security.md names has its own session and no other.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { serveAgent } from "crablet/agent-service";
import { agentOf } from "../fixtures/agent-service/agent.mjs";
import { clientOf, same, watched, within } from "./clients.mjs";

export async function permissions({ startNats, ledgerOf, repository }) {
  const security = await readFile(join(repository, "docs/security.md"), "utf8");
  const section = security.slice(
    security.indexOf("## Agents behind NATS"),
    security.indexOf("## Content security policy"),
  );
  const subjects = [...section.matchAll(/`((?:PREFIX\.|\$JS\.API)\S+)`/g)].map(([, subject]) =>
    subject.replaceAll("PREFIX", "crablet").replaceAll("NAME", "guarded").replaceAll("TOKEN", "mine"),
  );
  same(subjects.length, 6, "the subjects that docs/security.md names");
  const server = await startNats({
    config: `authorization { users = [
      { user: worker, password: worker },
      { user: client, password: client, permissions: {
        publish: ${JSON.stringify(subjects)}, subscribe: ["_INBOX_client.>"] } } ] }`,
  });
  const connection = await connect({ servers: server.url, user: "worker", pass: "worker" });
  const guarded = await connect({ servers: server.url, user: "client", pass: "client", inboxPrefix: "_INBOX_client" });
  let service;
  try {
    const agent = (session) => agentOf({ session, ledger: ledgerOf(), toolMs: 10 });
    service = await serveAgent({ connection, jetstream: jetstream(connection), name: "guarded", agent });
    const { client } = clientOf({ connection: guarded, jetstream: jetstream(guarded), patienceMs: 200 }, "guarded");
    const { events } = await within(20_000, "the run of its own session", watched(client.session("mine"), "1 step"));
    same(events.at(-1).stopReason, "stop", "the run of its own session");
    const refused = (what, work) =>
      within(20_000, what, work).then(
        () => Promise.reject(new Error(`${what} was let through`)),
        (error) => same(error.kind, "storage", what),
      );
    const other = client.session("other");
    await refused("a prompt to another session", other.prompt("1 step"));
    await refused("events of another session", other.events()[Symbol.asyncIterator]().next());
    return "a client with the documented permissions has its own session and no other";
  } finally {
    await service?.stop({ drainMs: 0 });
    await guarded.close();
    await connection.close();
    await server.stop();
  }
}
