/**
 * An agent behind subjects of NATS: many workers, one a session at a time, durable inputs and an ordered stream of events for
 * each session; and a store of conversations in a key-value bucket.
 *
 * The caller hands in the connection and `jetstream(connection)`; this entry loads no package of NATS and no WebAssembly.
 *
 * @packageDocumentation
 */
export {
  agentClient,
  type AgentClientOptions,
  type InputOptions,
  type InputReceipt,
  type PlacedEvent,
  type RemoteSession,
  RemoteTranscript,
} from "./client.js";
export type {
  JetStream,
  JetStreamConsumer,
  JetStreamManager,
  JetStreamMessage,
  NatsConnection,
  StoredMessage,
} from "./nats.js";
export type { ServiceEvent, ServiceInput, ServiceName, SessionEvent } from "./protocol.js";
export { type AgentService, serveAgent, type ServeAgentOptions, type ServiceLimits } from "./serve.js";
export { natsStore, type NatsStoreOptions } from "./store.js";
