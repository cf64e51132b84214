// Network cuts: the connection of a worker ends and comes back, and the server is started anew.
import { connect, createServer } from "node:net";
import { once } from "node:events";
import { clientOf, connected, until, watched, within } from "./clients.mjs";
import { isRight } from "./crowd.mjs";

export async function cuts({ startNats, startWorker, ledgerOf, readLedger }) {
  const server = await startNats();
  const wire = await cuttable(new URL(server.url).port);
  const ledger = ledgerOf();
  const options = { url: wire.url, name: "cuts", ledger, toolMs: 150, leaseMs: 10_000, maxSessions: 16 };
  const workers = await Promise.all([startWorker(options), startWorker(options)]);
  const nats = await connected(server.url);
  const { client, store } = clientOf(nats, "cuts");
  const round = async (name, disturb) => {
    const ids = Array.from({ length: 20 }, (_, number) => `${name}:${number}`);
    const before = (await readLedger(ledger)).length;
    const runs = Promise.all(ids.map(async (id) => [id, await watched(client.session(id), "3 steps")]));
    runs.catch(() => {});
    await until("runs are at work", async () => (await readLedger(ledger)).length > before + 30);
    await disturb();
    const lines = () => readLedger(ledger);
    for (const [id, seen] of await within(60_000, `the runs over ${name}`, runs))
      await isRight(id, { ...seen, store, lines: await lines() });
  };
  try {
    await round("cut", async () => {
      wire.cut();
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      wire.mend();
    });
    await round("restart", () => server.restart());
    return "runs went on over a cut connection and a server that was started anew";
  } finally {
    await nats.connection.close();
    await Promise.all(workers.map((worker) => worker.kill()));
    await wire.stop();
    await server.stop();
  }
}

/** A TCP relay to a port of this machine that can be cut. */
async function cuttable(port) {
  const sockets = new Set();
  let isCut = false;
  const relay = createServer((socket) => {
    if (isCut) return void socket.destroy();
    const other = connect(port, "127.0.0.1");
    for (const [one, two] of [
      [socket, other],
      [other, socket],
    ]) {
      sockets.add(one);
      one.on("error", () => {});
      one.on("close", () => {
        sockets.delete(one);
        two.destroy();
      });
      one.pipe(two);
    }
    return undefined;
  });
  relay.listen(0, "127.0.0.1");
  await once(relay, "listening");
  const destroyAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `nats://127.0.0.1:${relay.address().port}`,
    cut() {
      isCut = true;
      destroyAll();
    },
    mend() {
      isCut = false;
    },
    async stop() {
      destroyAll();
      relay.close();
    },
  };
}
