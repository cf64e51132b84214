// Many sessions over several workers, two of which are killed in the middle.
import { readFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { Agent } from "crablet";
import { bare, clientOf, connected, same, until, watched, within } from "./clients.mjs";

const SESSIONS = 200;
const STEPS = 3;

/** How long a payment takes: long enough that the workers are killed in the middle, also on a machine with other work. */
const TOOL_MS = 400;

export async function crowd({ startNats, startWorker, ledgerOf, readLedger }) {
  const server = await startNats();
  const ledger = ledgerOf();
  const options = { url: server.url, name: "crowd", ledger, toolMs: TOOL_MS, leaseMs: 4_000, maxSessions: 16 };
  const workers = await Promise.all(Array.from({ length: 4 }, () => startWorker(options)));
  const nats = await connected(server.url);
  const { client, store } = clientOf(nats, "crowd");
  const ids = Array.from({ length: SESSIONS }, (_, number) => `user:${number}`);
  try {
    const runs = Promise.all(ids.map(async (id) => [id, await watched(client.session(id), `${STEPS} steps`)]));
    runs.catch(() => {});
    const paid = async () => (await readLedger(ledger)).filter((line) => line.includes("paid")).length;
    await until("a quarter is done", async () => (await paid()) > (SESSIONS * STEPS) / 4, 60_000);
    await workers[0].kill();
    await until("half is done", async () => (await paid()) > (SESSIONS * STEPS) / 2, 60_000);
    await workers[1].kill();
    const ended = await within(120_000, "the runs of all sessions", runs);
    const lines = await readLedger(ledger);
    let interrupted = 0;
    let restored = 0;
    for (const [id, { events, messages }] of ended) {
      interrupted += await isRight(id, { events, messages, store, lines });
      restored += events.filter(({ type }) => type === "session-restored").length;
    }
    if (restored === 0) throw new Error("no session was taken over: the workers were killed too late to show anything");
    const payments = lines.filter((line) => line.includes("paid")).length;
    return (
      `${SESSIONS} sessions over 4 workers, 2 of them killed: ${restored} taken over, ${payments} payments and none twice, ` +
      `${interrupted} of them of unknown end to the model`
    );
  } finally {
    await nats.connection.close();
    await Promise.all(workers.map((worker) => worker.kill()));
    await server.stop();
  }
}

/** Checks a session: its end, its events, what is stored of it and what the ledger has. Gives the interrupted calls. */
export async function isRight(id, { events, messages, store, lines, payments: all = STEPS }) {
  const ends = events.filter(({ type }) => type === "run-end");
  same(ends.length, 1, `the ends of ${id}`);
  const session = await new Agent({ model: async function* () {} }).open(id, store);
  const { status, messages: kept } = session.getState();
  same(status, "idle", `the state of ${id}`);
  same(bare(messages), bare(kept), `what the events of ${id} tell beside what is stored`);
  const results = kept.flatMap(({ role, content }) => (role === "tool" ? content : []));
  const payments = results.filter(({ toolName }) => toolName === "pay");
  const failed = payments.filter(({ isError }) => isError).length;
  same(payments.length, all, `the payments of ${id}`);
  same(ends[0].text, `${STEPS} payments, ${failed} of unknown end, 0 steered`, `the answer of ${id}`);
  for (const { callId, isError } of payments) {
    const times = lines.filter((line) => line === `${id} paid ${callId}`).length;
    if (times > 1 || (times === 0 && !isError)) throw new Error(`${id} paid ${callId} ${times} times`);
  }
  return failed;
}

/** How many runs a second 1, 2 and 4 workers end, and whose time it is. Printed, not asserted: it depends on the machine. */
export async function throughput({ startNats, startWorker, ledgerOf, machine, runs = 100 }) {
  const server = await startNats();
  const nats = await connected(server.url);
  const seen = [];
  try {
    for (const count of [1, 2, 4]) {
      const name = `speed${count}`;
      const options = { url: server.url, name, ledger: ledgerOf(), toolMs: 20, maxSessions: 32 };
      const workers = await Promise.all(Array.from({ length: count }, () => startWorker(options)));
      const { client } = clientOf(nats, name);
      const run = (id) => watched(client.session(id), `${STEPS} steps`);
      await run("warm");
      const spent = async () => ({
        workers: (await Promise.all(workers.map(({ pid }) => cpuSeconds(pid)))).reduce((sum, each) => sum + each, 0),
        "nats-server": await cpuSeconds(server.pid),
        client: await cpuSeconds(process.pid),
      });
      const [before, started] = [await spent(), performance.now()];
      await within(60_000, "the runs", Promise.all(Array.from({ length: runs }, (_, number) => run(`s${number}`))));
      const seconds = (performance.now() - started) / 1000;
      const after = await spent();
      const times = Object.entries(after).map(([who, time]) => [who, time - before[who]]);
      const share = (time) => time / seconds / cpus().length;
      const used = share(times.reduce((sum, [, time]) => sum + time, 0));
      const told = times
        .map(([who, time]) => {
          const step = (time * 1000) / (runs * STEPS);
          return `${who} ${(share(time) * 100).toFixed(0)} % and ${step.toFixed(1)} ms a step`;
        })
        .join(", ");
      const rest = used > 0.8 ? "the processors are full" : "the rest is other work of the machine, or waiting";
      seen.push(`${count}: ${(runs / seconds).toFixed(1)} (${told} of the processors; ${rest})`);
      await Promise.all(workers.map((worker) => worker.kill()));
    }
  } finally {
    await nats.connection.close();
    await server.stop();
  }
  const load = loadavg()[0].toFixed(1);
  return `runs a second of ${STEPS} steps by 1, 2 and 4 workers on ${machine}, load ${load}: ${seen.join("; ")}`;
}

/** The time that a process has had of the processors; 0 where there is no /proc. */
async function cpuSeconds(pid) {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return text === "" ? 0 : (Number(fields[11]) + Number(fields[12])) / 100;
}
