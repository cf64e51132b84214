/// <reference lib="esnext.disposable" preserve="true" />
import type { Agent } from "../agent.js";
import { invalidInput } from "../error.js";
import { Claims } from "./claims.js";
import {
  codeOf,
  type JetStream,
  type JetStreamConsumer,
  type JetStreamMessage,
  type NatsConnection,
  natsError,
  nonce,
  sleep,
  Streams,
} from "./nats.js";
import { type Names, namesOf, type ServiceName, sessionOf } from "./protocol.js";
import { SessionWork, type WorkParts } from "./session-work.js";
import { BUCKET, ensureStream, PATIENCE_MS, SessionLogs, setUpBucket } from "./store.js";

/** A worker of an agent service. */
export interface ServeAgentOptions extends ServiceName {
  /** An open connection, which stays the caller's. Let it reconnect without end: `maxReconnectAttempts: -1`. */
  readonly connection: NatsConnection;
  /** `jetstream(connection)`. */
  readonly jetstream: JetStream;
  /**
   * The agent, or one for each session, asked for each time a worker takes the session up. It stays the caller's too. A function
   * that throws is tried five times in some eight seconds; then the inputs that wait are refused with what it threw, and an open
   * run is told of as `session-failed`.
   */
  readonly agent: Agent<any> | ((session: string) => Agent<any> | Promise<Agent<any>>);
  /** The most sessions that this worker is at at once. Default 16. */
  readonly maxSessions?: number;
  /** After how long a worker that says nothing is held for dead, in milliseconds; at least 1000. The same for all workers. Default 15 000. */
  readonly leaseMs?: number;
  /** How long a write is tried again while the server is away, in milliseconds. Default 30 000. */
  readonly patienceMs?: number;
  /** The limits of the streams, when they are made. */
  readonly limits?: ServiceLimits;
}

/** The limits of the streams of a service. What is there already is left as it is. */
export interface ServiceLimits {
  /** How long events are kept, in milliseconds. Default seven days. */
  readonly eventAgeMs?: number;
  /** The most messages of events of one session: the oldest are dropped. Default 10 000. */
  readonly eventsPerSession?: number;
  /** The most bytes of all events: the oldest are dropped. Default: no limit. */
  readonly eventBytes?: number;
  /** How long a message id is remembered, so that an input that is sent again counts once, in milliseconds. Default 120 000. */
  readonly duplicateMs?: number;
  /** How often each message is kept, 1, 3 or 5. Default 1. */
  readonly replicas?: number;
}

/** A worker at work. */
export interface AgentService extends AsyncDisposable {
  /** What this worker is called in claims and events. */
  readonly worker: string;
  /** The sessions that it is at. */
  sessions(): readonly string[];
  /**
   * Takes nothing new and waits until the runs have ended, for `drainMs` at most, 30 000 by default. Runs that are still at work
   * then are left to other workers at once, as if this one had died: a tool at work is reported as interrupted.
   */
  stop(options?: { readonly drainMs?: number }): Promise<void>;
}

/**
 * Serves an agent: takes inputs of sessions, one worker a session at a time, runs them, and publishes their events. Makes the
 * streams that are missing.
 *
 * @throws CrabletError `storage` when JetStream cannot be reached or the streams cannot be made.
 */
export async function serveAgent(options: ServeAgentOptions): Promise<AgentService> {
  const { connection, jetstream, agent, maxSessions = 16, leaseMs = 15_000 } = options;
  if (!(leaseMs >= 1000)) throw invalidInput("leaseMs is at least 1000: the server looks at ages once a second");
  if (!(maxSessions >= 1)) throw invalidInput("maxSessions is at least 1");
  const names = namesOf(options);
  const streams = new Streams(connection, jetstream, options.patienceMs ?? PATIENCE_MS);
  const worker = nonce();
  const claims = new Claims(streams, names, worker);
  let consumer: JetStreamConsumer;
  try {
    await setUp(streams, names, leaseMs, options.limits ?? {});
    await claims.renew();
    consumer = await jetstream.consumers.get(names.inputStream, CONSUMER);
  } catch (thrown) {
    throw natsError(thrown, "the agent service could not be set up");
  }
  const parts: WorkParts = {
    streams,
    names,
    worker,
    logs: new SessionLogs(streams, names.sessions),
    agentOf: (session) => (typeof agent === "function" ? agent(session) : agent),
  };
  return new Worker({ parts, claims, consumer, maxSessions, leaseMs });
}

class Worker implements AgentService {
  readonly #parts: WorkParts;
  readonly #claims: Claims;
  readonly #consumer: JetStreamConsumer;
  readonly #leaseMs: number;
  readonly #works = new Map<string, SessionWork>();
  /** Sessions that are being claimed, so that one is not claimed twice. */
  readonly #claiming = new Set<string>();
  readonly #loops: Promise<void>[];
  readonly #timer: ReturnType<typeof setInterval>;
  #isStopped = false;
  #renewing = false;

  constructor(given: {
    parts: WorkParts;
    claims: Claims;
    consumer: JetStreamConsumer;
    maxSessions: number;
    leaseMs: number;
  }) {
    this.#parts = given.parts;
    this.#claims = given.claims;
    this.#consumer = given.consumer;
    this.#leaseMs = given.leaseMs;
    this.#timer = setInterval(() => this.#beat(), given.leaseMs / BEATS);
    this.#loops = Array.from({ length: given.maxSessions }, () => this.#pull());
  }

  get worker(): string {
    return this.#parts.worker;
  }

  sessions(): readonly string[] {
    return [...this.#works.keys()];
  }

  async stop({ drainMs = 30_000 }: { readonly drainMs?: number } = {}): Promise<void> {
    this.#isStopped = true;
    for (const work of this.#works.values()) work.drain();
    const handOver = setTimeout(() => {
      for (const work of this.#works.values()) work.stop("handed-over");
    }, drainMs);
    await Promise.all(this.#loops);
    clearTimeout(handOver);
    clearInterval(this.#timer);
    await this.#claims.leave().catch(() => {});
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** Says that this worker is alive and its messages are being worked on. */
  #beat(): void {
    for (const work of this.#works.values()) work.working();
    if (this.#renewing) return;
    this.#renewing = true;
    this.#claims
      .renew()
      // The next beat tries again. Meanwhile others may take over; then the revisions keep this worker out.
      .catch(() => {})
      .finally(() => {
        this.#renewing = false;
      });
  }

  /** Takes one message after the other. */
  async #pull(): Promise<void> {
    while (!this.#isStopped && !this.#parts.streams.connection.isClosed()) {
      let message: JetStreamMessage | null = null;
      try {
        message = await this.#consumer.next({ expires: PULL_MS });
      } catch {
        // The server is away.
        await sleep(AWAY_MS);
      }
      if (message === null) continue;
      if (this.#isStopped) message.nak();
      else await this.#take(message).catch(() => message.nak(this.#leaseMs / BEATS));
    }
  }

  /** Works on the session of a message, unless somebody is at it. */
  async #take(message: JetStreamMessage): Promise<void> {
    const session = sessionOf(message.subject.slice(message.subject.lastIndexOf(".") + 1));
    if (session === undefined) {
      // No client of this protocol wrote it, and nobody can read its events.
      message.ack();
      return;
    }
    const working = this.#works.get(session);
    if (working !== undefined) {
      working.hold(message);
      return;
    }
    if (this.#claiming.has(session)) {
      message.nak(CLAIMING_MS);
      return;
    }
    this.#claiming.add(session);
    let claim: number | undefined;
    try {
      claim = await this.#claims.claim(session, false);
    } finally {
      this.#claiming.delete(session);
    }
    if (claim === undefined) {
      message.nak(this.#leaseMs / BEATS);
      return;
    }
    const work = new SessionWork(this.#parts, session);
    this.#works.set(session, work);
    work.hold(message);
    if (this.#isStopped) work.drain();
    const end = await work.work();
    this.#works.delete(session);
    // First the claim, then the messages: whoever gets one of them finds the session free.
    if (end !== "lost") await this.#claims.release(session, claim).catch(() => {});
    work.settleDeliveries(end, Date.now());
  }
}

/** Makes the streams that are missing. */
async function setUp(streams: Streams, names: Names, leaseMs: number, limits: ServiceLimits): Promise<void> {
  const { replicas = 1, duplicateMs = 120_000, eventAgeMs = 7 * 86_400_000, eventsPerSession = 10_000 } = limits;
  const copies = { num_replicas: replicas };
  await ensureStream(streams, {
    name: names.inputStream,
    subjects: [names.inputSubjects],
    retention: "workqueue",
    storage: "file",
    discard: "new",
    duplicate_window: nanos(duplicateMs),
    ...copies,
  });
  await ensureStream(streams, {
    name: names.eventStream,
    subjects: [names.eventSubjects],
    retention: "limits",
    storage: "file",
    discard: "old",
    max_age: nanos(eventAgeMs),
    max_msgs_per_subject: eventsPerSession,
    max_bytes: limits.eventBytes ?? -1,
    duplicate_window: nanos(Math.min(eventAgeMs, 120_000)),
    ...copies,
  });
  await setUpBucket(streams, names.sessions, replicas);
  await ensureStream(streams, {
    name: `KV_${names.claims}`,
    subjects: [`$KV.${names.claims}.>`],
    max_msgs_per_subject: 1,
    ...BUCKET,
    ...copies,
  });
  await ensureStream(streams, {
    name: `KV_${names.workers}`,
    subjects: [`$KV.${names.workers}.>`],
    max_msgs_per_subject: 1,
    max_age: nanos(leaseMs),
    duplicate_window: nanos(Math.min(leaseMs, 120_000)),
    ...BUCKET,
    ...copies,
  });
  await streams.patiently(async () => {
    const { consumers } = await streams.manager();
    try {
      await consumers.info(names.inputStream, CONSUMER);
    } catch (thrown) {
      if (codeOf(thrown) !== CONSUMER_NOT_FOUND) throw thrown;
      await consumers.add(names.inputStream, {
        durable_name: CONSUMER,
        ack_policy: "explicit",
        ack_wait: nanos(leaseMs),
        max_deliver: -1,
        max_ack_pending: MAX_OPEN,
        max_waiting: MAX_PULLS,
      });
    }
  });
}

const nanos = (millis: number): number => Math.round(millis * 1_000_000);

/** The durable consumer that all workers share. */
const CONSUMER = "workers";
/** How often in a lease a worker says that it is alive. */
const BEATS = 4;
/** How long a request for a message stands. */
const PULL_MS = 5_000;
const AWAY_MS = 500;
const CLAIMING_MS = 100;
/** The most messages that are delivered and not settled, of all workers. */
const MAX_OPEN = 100_000;
/** The most requests for messages that stand, of all workers. */
const MAX_PULLS = 8_192;
const CONSUMER_NOT_FOUND = 10014;
