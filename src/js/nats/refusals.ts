import type { NatsConnection } from "./connection.js";

/** What a NATS server does not let the user of a connection do. */
export interface Refusal {
  readonly operation: "publish" | "subscription";
  readonly subject: string;
}

/**
 * Calls the listener with what the server refuses to a connection, until the function is called that is given back. The server
 * names the subject and not the message, and tells the connection as a whole.
 *
 * @internal
 */
export function onRefusal(connection: NatsConnection, listener: (refusal: Refusal) => void): () => void {
  let listeners = known.get(connection);
  if (listeners === undefined) {
    listeners = new Set();
    known.set(connection, listeners);
    watch(connection, listeners);
  }
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

async function watch(connection: NatsConnection, listeners: ReadonlySet<(refusal: Refusal) => void>): Promise<void> {
  // Ends with the connection.
  for await (const { error } of connection.status?.() ?? []) {
    const { operation, subject } = (error ?? {}) as Partial<Refusal>;
    if (operation === undefined || subject === undefined) continue;
    for (const listener of listeners) listener({ operation, subject });
  }
}

/** One for each connection, however many servers are called over it. */
const known = new WeakMap<NatsConnection, Set<(refusal: Refusal) => void>>();
