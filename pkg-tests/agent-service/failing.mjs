// A worker whose agent cannot be made: it tries a few times, says so, and lets others go on.
import { serveAgent } from "crablet/agent-service";
import { agentOf } from "../fixtures/agent-service/agent.mjs";
import { clientOf, connected, same, until, watched, within } from "./clients.mjs";

export async function failing({ startNats, ledgerOf, readLedger }) {
  const server = await startNats();
  const nats = await connected(server.url);
  const ledger = ledgerOf();
  const serve = (name, agent) => serveAgent({ ...nats, name, leaseMs: 2_000, agent });
  const works = (session) => agentOf({ session, ledger, toolMs: 300 });
  const fails = () => {
    throw new Error("the vault is closed");
  };
  const services = [];
  const silenced = console.error;
  console.error = () => {};
  try {
    let attempts = 0;
    services.push(await serve("slow-start", (session) => (++attempts < 3 ? fails() : works(session))));
    const { client } = clientOf(nats, "slow-start");
    const { events } = await within(20_000, "the run after two failures", watched(client.session("a"), "1 step"));
    same(events.at(-1).stopReason, "stop", "the run after two failures");
    await Promise.all([
      refused(nats, serve, fails, services),
      openRun(nats, { serve, works, fails, services, ledger, readLedger }),
    ]);
    return "an agent that cannot be made is tried five times, then its inputs are refused and an open run is told of";
  } finally {
    await Promise.all(services.map((service) => service.stop({ drainMs: 0 })));
    console.error = silenced;
    await nats.connection.close();
    await server.stop();
  }
}

const TOLD = "the agent of this session could not be made, which was tried 5 times: the vault is closed";

async function refused(nats, serve, fails, services) {
  services.push(await serve("closed", fails));
  const { client } = clientOf(nats, "closed");
  const error = await within(
    30_000,
    "the refusal",
    watched(client.session("a"), "1 step").catch((thrown) => thrown),
  );
  same([error.kind, error.message], ["internal", TOLD], "the refusal");
}

/** A run that was at work is told of as failed, and goes on with the next prompt once an agent can be made. */
async function openRun(nats, { serve, works, fails, services, ledger, readLedger }) {
  const { client } = clientOf(nats, "open");
  const session = client.session("open-run");
  const first = await serve("open", works);
  const run = watched(session, "2 steps").catch((thrown) => thrown);
  await until("the run is at work", async () => (await readLedger(ledger)).some((line) => line.startsWith("open-run")));
  const second = await serve("open", fails);
  await first.stop({ drainMs: 0 });
  same((await within(30_000, "the failure of the open run", run)).message, TOLD, "the failure of the open run");
  services.push(await serve("open", works));
  await second.stop({ drainMs: 0 });
  const { events } = await within(20_000, "the run that goes on", watched(session, "0 steps"));
  same(events.at(-1).text, "0 payments, 0 of unknown end, 0 steered", "the run of the next prompt");
  const texts = [];
  for await (const { event } of session.events()) {
    if (event.type === "run-end") texts.push(event.text);
    if (texts.length === 2) break;
  }
  same(texts[0], "2 payments, 1 of unknown end, 0 steered", "the run that goes on");
}
