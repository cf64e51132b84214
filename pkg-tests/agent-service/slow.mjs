// A worker that is only slow: it is stopped for longer than its lease, another takes over, and when it goes on it is refused.
import { clientOf, connected, same, until, within } from "./clients.mjs";
import { isRight } from "./crowd.mjs";
import { RemoteTranscript } from "crablet/agent-service";

export async function slowWorker({ startNats, startWorker, ledgerOf, readLedger }) {
  const server = await startNats();
  const ledger = ledgerOf();
  const options = { url: server.url, name: "slow", ledger, leaseMs: 1_000, maxSessions: 2 };
  const nats = await connected(server.url);
  const { client, store } = clientOf(nats, "slow");
  const first = await startWorker({ ...options, toolMs: 1_500 });
  let second;
  try {
    const session = client.session("user:0");
    await session.prompt("3 steps");
    await until("a tool is at work", async () => (await readLedger(ledger)).length > 0);
    first.signal("SIGSTOP");
    second = await startWorker({ ...options, toolMs: 10 });
    const events = [];
    const transcript = new RemoteTranscript();
    const seen = (async () => {
      for await (const { event } of session.events()) {
        events.push(event);
        transcript.apply(event);
        // The slower worker goes on while the other is in the middle of the run.
        if (event.type === "session-restored") first.signal("SIGCONT");
        if (event.type === "run-end") return;
      }
    })();
    await within(30_000, "the run of the other worker", seen);
    // What the slower worker has yet to do it does now: its tool ends, and it may take the next session.
    await within(
      30_000,
      "another session",
      until("the first worker is free", async () => isFree(client, ledger, readLedger)),
    );
    const lines = await readLedger(ledger);
    const failed = await isRight("user:0", { events, messages: transcript.messages, store, lines });
    same(failed, 1, "payments of unknown end");
    const all = [];
    const controller = new AbortController();
    const tail = (async () => {
      for await (const { event } of session.events({ signal: controller.signal })) all.push(event);
    })().catch(() => {});
    await until("all events came again", () => all.length >= events.length);
    controller.abort();
    await tail;
    same(all.length, events.length, "events after the end of the run");
    return "a worker that was stopped for longer than its lease wrote nothing when it went on";
  } finally {
    await nats.connection.close();
    await first.kill();
    await second?.kill();
    await server.stop();
  }
}

/** Whether both workers take sessions: two at once, one of which takes the slower worker's time. */
async function isFree(client, ledger, readLedger) {
  const names = ["a", "b", "c", "d"].map((name) => `${name}${Math.random().toString(36).slice(2)}`);
  await Promise.all(
    names.map(async (name) => {
      for await (const { event } of client.session(name).run("1 step")) if (event.type === "run-end") return;
    }),
  );
  return (await readLedger(ledger)).length > 0;
}
