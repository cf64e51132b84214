// The types that the entry asks for are those that the official packages give. Compiled, not run.
import { connect } from "@nats-io/transport-node";
import { wsconnect } from "@nats-io/nats-core";
import { jetstream } from "@nats-io/jetstream";
import type { Agent } from "crablet";
import { agentClient, natsStore, serveAgent } from "crablet/agent-service";

export async function both(agent: Agent): Promise<void> {
  for (const connection of [await connect(), await wsconnect()]) {
    const nats = { connection, jetstream: jetstream(connection) };
    await serveAgent({ ...nats, name: "clerk", agent });
    for await (const { event } of agentClient({ ...nats, name: "clerk" })
      .session("x")
      .events()) {
      if (event.type === "session-restored") console.log(event.messages.length);
    }
    await agent.open("x", natsStore({ ...nats, bucket: "b" }));
  }
}
