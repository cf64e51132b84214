// Connections of the test itself, and what it sees of sessions.
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { agentClient, natsStore, RemoteTranscript } from "crablet/agent-service";

/** A connection that reconnects for ever. */
export async function connected(url) {
  const connection = await connect({ servers: url, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
  return { connection, jetstream: jetstream(connection) };
}

/** A client of a service, and the store in which its workers keep sessions. */
export function clientOf(nats, name) {
  return {
    client: agentClient({ ...nats, name }),
    store: natsStore({ ...nats, bucket: `crablet_${name}_sessions` }),
  };
}

export function same(given, expected, what) {
  const [left, right] = [JSON.stringify(given), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${what}: ${left?.slice(0, 600)} is not ${right?.slice(0, 600)}`);
}

/** Fails when something takes longer than it may. */
export async function within(millis, what, work) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${millis} ms`)), millis);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until something holds. */
export async function until(what, holds, millis = 30_000) {
  const deadline = Date.now() + millis;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`it took longer than ${millis} ms until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** All events of a run from its prompt on, and the messages put together from them. */
export async function watched(session, input, options) {
  const events = [];
  for await (const { event } of session.run(input, options)) events.push(event);
  const transcript = new RemoteTranscript();
  for (const event of events) transcript.apply(event);
  return { events, messages: transcript.messages };
}

/** The messages that a store keeps, without the ids that those of tools have there alone. */
export const bare = (messages) =>
  messages.map(({ role, content }) => ({
    role,
    content: content.map(({ type, text, callId, isError, content: told }) => ({ type, text, callId, isError, told })),
  }));
