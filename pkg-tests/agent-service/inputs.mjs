// What a client sends a session and what becomes of it, with a worker in this process.
import { Agent, tool } from "crablet";
import { natsStore, serveAgent } from "crablet/agent-service";
import { agentOf } from "../fixtures/agent-service/agent.mjs";
import { clientOf, connected, same, until, watched, within } from "./clients.mjs";

const input = { type: "object", properties: { path: { type: "string" } } };

export async function inputs({ startNats, ledgerOf, readLedger }) {
  const server = await startNats();
  const nats = await connected(server.url);
  const ledger = ledgerOf();
  const serve = (name, agent) => serveAgent({ ...nats, name, agent, leaseMs: 2_000 });
  const services = [];
  try {
    services.push(await serve("people", asking()));
    await people(nats);
    services.push(await serve("queues", (session) => agentOf({ session, ledger, toolMs: 300 })));
    await queues(nats, () => readLedger(ledger));
    await twice(nats);
    await replay(nats);
    await isEmpty(nats, "people");
    await isEmpty(nats, "queues");
    await handOver(nats, services, serve, ledger);
    return "approvals, answers, steering, follow-ups, aborts, an input sent twice, replay, hand-over";
  } finally {
    await Promise.all(services.map((service) => service.stop({ drainMs: 0 })));
    await nats.connection.close();
    await server.stop();
  }
}

/** An agent that asks for an approval and asks a question. */
function asking() {
  async function* model({ messages }) {
    const last = messages.at(-1);
    if (last.role === "user") {
      yield { type: "tool-call", callId: `remove-${messages.length}`, toolName: "remove", input: { path: "draft" } };
      yield { type: "tool-call", callId: `ask-${messages.length}`, toolName: "ask", input: { path: "which" } };
    } else yield last.content.map(({ content, isError }) => `${isError ? "refused" : content[0].text}`).join(" and ");
  }
  const tools = {
    remove: tool({ description: "Removes.", input, needsApproval: true, execute: async () => "removed" }),
    ask: tool({ description: "Asks the user.", input }),
  };
  return new Agent({ model, tools });
}

async function people(nats) {
  const { client } = clientOf(nats, "people");
  for (const allow of [true, false]) {
    const session = client.session(`чат ${allow}`);
    const { events } = await watched(session, "Tidy up.");
    same(events.at(-1).type, "run-suspended", "the run waits");
    const request = events.find(({ type }) => type === "approval-request");
    const ended = watchedFrom(session, "run-end");
    await session.approve("remove-unknown", true);
    await session.approve(request.callId, allow, { inputHash: request.inputHash });
    await session.toolResult("ask-1", "the red one");
    const end = (await within(20_000, "the run of the people", ended)).at(-1);
    same(end.text, `${allow ? "removed" : "refused"} and the red one`, "the answer");
  }
}

/** The events until one of a type, from the first that is kept. */
async function watchedFrom(session, type, after) {
  const events = [];
  for await (const { event, cursor } of session.events(after === undefined ? {} : { after })) {
    events.push({ ...event, cursor });
    if (event.type === type) return events;
  }
  return events;
}

async function queues(nats, lines) {
  const { client } = clientOf(nats, "queues");
  const steered = client.session("steered");
  const ended = watched(steered, "2 steps");
  await until("the run is at work", async () => (await lines()).some((line) => line.startsWith("steered")));
  await steered.steer("Faster.");
  await steered.followUp("1 step");
  const { events } = await within(20_000, "the steered run", ended);
  const ends = events.filter(({ type }) => type === "step-end").map(({ message }) => message.content.at(-1).text);
  same(
    ends.filter(Boolean),
    ["2 payments, 0 of unknown end, 1 steered", "1 payments, 0 of unknown end, 0 steered"],
    "answers",
  );
  const outcomes = events.filter(({ type }) => type === "steer-delivered").map(({ messageId }) => messageId);
  const accepted = events.filter(({ type, inputType }) => type === "input-accepted" && inputType === "steer");
  same(
    accepted.map(({ messageId }) => messageId),
    outcomes,
    "the steered message",
  );

  const stopped = client.session("stopped");
  const aborted = watched(stopped, "3 steps");
  await until("the run is at work", async () => (await lines()).some((line) => line.startsWith("stopped")));
  await stopped.abort("enough");
  same((await within(20_000, "the aborted run", aborted)).events.at(-1).stopReason, "aborted", "the aborted run");
  await stopped.steer("Hello?");
  const refused = await within(20_000, "the refusal", watchedFrom(stopped, "input-refused"));
  same(refused.at(-1).error.kind, "invalid-input", "steering without a run");

  const queued = client.session("queued");
  const texts = Promise.all(
    ["1 step", "2 steps", "0 steps"].map((prompt) => watched(queued, prompt, { id: `q-${prompt}` })),
  );
  const starts = (await within(20_000, "queued prompts", texts)).map((seen) => seen.events.at(-1).text.slice(0, 10));
  same(starts, ["1 payments", "2 payments", "0 payments"], "prompts in their order");
}

async function twice(nats) {
  const { client } = clientOf(nats, "queues");
  const session = client.session("twice");
  const receipts = [await session.prompt("0 steps", { id: "once" }), await session.prompt("0 steps", { id: "once" })];
  same(
    receipts.map(({ isDuplicate }) => isDuplicate),
    [false, true],
    "the receipts",
  );
  await watched(session, "0 steps");
  const events = await allOf(session);
  same(
    events.filter(({ type }) => type === "run-start").length,
    2,
    "runs of an input that was sent twice, and of another",
  );
}

/** All events of a session: up to the refusal of an input that says that nothing is at work. */
async function allOf(session) {
  const { inputId } = await session.abort();
  const events = [];
  for await (const { event, cursor } of session.events()) {
    if (event.type === "input-refused" && event.inputId === inputId) return events;
    events.push({ ...event, cursor });
  }
  return events;
}

/** Whoever comes back goes on behind the last event that was seen, in the middle of a message too. */
async function replay(nats) {
  const { client } = clientOf(nats, "queues");
  const session = client.session("steered");
  const all = await allOf(session);
  for (const place of [0, 5, all.length - 3]) {
    const rest = [];
    for await (const { event } of session.events({ after: all[place].cursor })) {
      rest.push(event);
      if (rest.length === all.length - place - 1) break;
    }
    same(
      rest,
      all.slice(place + 1).map(({ cursor: _cursor, ...event }) => event),
      `the events after ${place}`,
    );
  }
}

/** Nothing is left of what was dealt with: no input, no claim. */
async function isEmpty({ jetstream }, name) {
  const { streams } = await jetstream.jetstreamManager();
  for (const stream of [`crablet_${name}_input`, `KV_crablet_${name}_claims`])
    await until(`${stream} is empty`, async () => (await streams.info(stream)).state.messages === 0);
}

/** A worker that is stopped leaves its run to another, which goes on at once. */
async function handOver(nats, services, serve, ledger) {
  const agent = (session) => agentOf({ session, ledger, toolMs: 400 });
  const first = await serve("hand-over", agent);
  const { client } = clientOf(nats, "hand-over");
  const ended = watched(client.session("moved"), "3 steps");
  await until("the first worker is at it", () => first.sessions().length === 1);
  services.push(await serve("hand-over", agent));
  await first.stop({ drainMs: 200 });
  const { events } = await within(20_000, "the run that moved", ended);
  same(events.at(-1).stopReason, "stop", "the end of the run that moved");
  same(await natsStore({ ...nats, bucket: "crablet_hand-over_sessions" }).list(), ["moved"], "the sessions");
}
