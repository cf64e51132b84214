// The types that the entries over NATS ask for are those that the official packages give. Compiled, not run.
import { connect } from "@nats-io/transport-node";
import { wsconnect } from "@nats-io/nats-core";
import { jetstream } from "@nats-io/jetstream";
import { type Agent, mcp } from "crablet";
import { agentClient, natsStore, serveAgent } from "crablet/agent-service";
import { nats as over } from "crablet/nats";

export async function both(agent: Agent): Promise<void> {
  for (const connection of [await connect(), await wsconnect()]) {
    const nats = { connection, jetstream: jetstream(connection) };
    await serveAgent({ ...nats, name: "clerk", agent });
    for await (const { event } of agentClient({ ...nats, name: "clerk" })
      .session("x")
      .events()) {
      if (event.type === "session-restored") console.log(event.messages.length);
    }
    await mcp.connect(over({ connection, server: "files" }));
    await agent.open("x", natsStore({ ...nats, bucket: "b" }));
  }
}
