// A session in the middle of a run goes from a worker in Node to one in Rust, and the other way.
import { clientOf, connected, same, until, watched, within } from "./clients.mjs";
import { isRight } from "./crowd.mjs";

export async function takeovers({ startNats, startWorker, startNative, ledgerOf, readLedger }) {
  const server = await startNats();
  const nats = await connected(server.url);
  try {
    for (const [name, [first, second]] of Object.entries({
      "node-to-rust": [startWorker, startNative],
      "rust-to-node": [startNative, startWorker],
    })) {
      const ledger = ledgerOf();
      const options = { url: server.url, name, ledger, leaseMs: 1_500, maxSessions: 2 };
      const { client, store } = clientOf(nats, name);
      // Long enough that the payment is at work when its worker is killed.
      const killed = await first({ ...options, toolMs: 1_500 });
      let other;
      try {
        // A run that ended is what the other one finds before the run that it goes on with.
        const before = await within(20_000, "the run before", watched(client.session("user:0"), "1 step"));
        same(before.events.at(-1).stopReason, "stop", "the end of the run before");
        const run = watched(client.session("user:0"), "3 steps");
        run.catch(() => {});
        const paid = async () => (await readLedger(ledger)).filter((line) => line.includes("paid")).length;
        await until("the second payment is at work", async () => (await paid()) === 3);
        await killed.kill();
        other = await second({ ...options, toolMs: 20 });
        const { events, messages } = await within(30_000, `the run from ${name}`, run);
        same(events.filter(({ type }) => type === "session-restored").length, 1, `takeovers of ${name}`);
        const all = [...before.messages, ...messages];
        const lines = await readLedger(ledger);
        const failed = await isRight("user:0", { events, messages: all, store, lines, payments: 4 });
        same(failed, 1, `payments of unknown end of ${name}`);
      } finally {
        await killed.kill();
        await other?.kill();
      }
    }
    return "a session in the middle of a run went from Node to Rust and from Rust to Node";
  } finally {
    await nats.connection.close();
    await server.stop();
  }
}
