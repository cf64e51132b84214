import { codeOf, decode, encode, nonce, type StoredMessage, type Streams } from "./nats.js";
import type { Names } from "./protocol.js";

/**
 * What a worker may do with a session, by what was read: the claim on it, whether the worker that holds it is alive, and whether
 * this worker is at it.
 *
 * @internal
 */
export function decideClaim(read: {
  readonly holder: string | undefined;
  readonly isHolderAlive: boolean;
  readonly me: string;
  readonly isMineAtWork: boolean;
}): "take" | "take-over" | "wait" {
  if (read.holder === undefined) return "take";
  // A claim of this worker's own that it knows nothing of: it could not be released.
  if (read.holder === read.me) return read.isMineAtWork ? "wait" : "take-over";
  return read.isHolderAlive ? "wait" : "take-over";
}

/**
 * Who works on which session. A claim says which worker, and holds for as long as that worker's entry is there, which the server
 * takes away unless it is renewed. No clock but the server's is looked at.
 *
 * A claim only keeps workers from getting in each other's way. What a worker that was only slow still does is refused by the
 * revisions of the session and of its events.
 *
 * @internal
 */
export class Claims {
  readonly #streams: Streams;
  readonly #names: Names;
  readonly worker: string;
  #revision = 0;

  constructor(streams: Streams, names: Names, worker: string) {
    this.#streams = streams;
    this.#names = names;
    this.worker = worker;
  }

  /** Says that this worker is alive. An entry that the server took away meanwhile is made anew. */
  async renew(): Promise<void> {
    const place = this.#names.worker(this.worker);
    const payload = (): Uint8Array => encode(JSON.stringify({ v: 1, id: nonce() }));
    let revision = await this.#streams.chain(place, this.#revision, nonce(), payload());
    if (revision === undefined) {
      const last = await this.#streams.last(place.stream, place.subject);
      revision = await this.#streams.chain(place, last?.seq ?? 0, nonce(), payload());
    }
    this.#revision = revision ?? 0;
  }

  /** Takes this worker's entry away, so that others need not wait for it to lapse. */
  async leave(): Promise<void> {
    if (this.#revision > 0) await this.#delete(this.#names.worker(this.worker).stream, this.#revision);
  }

  /** Claims a session: the revision of the claim, or `undefined` when another worker is at it. */
  async claim(session: string, isMineAtWork: boolean): Promise<number | undefined> {
    const place = this.#names.claim(session);
    const payload = encode(JSON.stringify({ v: 1, worker: this.worker, id: nonce() }));
    const taken = await this.#streams.chain(place, 0, nonce(), payload);
    if (taken !== undefined) return taken;
    const last = await this.#streams.last(place.stream, place.subject);
    if (last === undefined) return undefined;
    const holder = holderOf(last);
    const isHolderAlive = holder !== undefined && (await this.#isAlive(holder));
    if (decideClaim({ holder, isHolderAlive, me: this.worker, isMineAtWork }) === "wait") return undefined;
    return this.#streams.chain(place, last.seq, nonce(), payload);
  }

  /** Gives a claim up. One that another worker has taken over stays. */
  async release(session: string, revision: number): Promise<void> {
    await this.#delete(this.#names.claim(session).stream, revision);
  }

  async #isAlive(worker: string): Promise<boolean> {
    const { stream, subject } = this.#names.worker(worker);
    return (await this.#streams.last(stream, subject)) !== undefined;
  }

  async #delete(stream: string, revision: number): Promise<void> {
    await this.#streams.patiently(async () => {
      const { streams } = await this.#streams.manager();
      await streams.deleteMessage(stream, revision, false).catch((thrown: unknown) => {
        // It is gone already.
        if (codeOf(thrown) === undefined) throw thrown;
      });
    });
  }
}

function holderOf({ data }: StoredMessage): string | undefined {
  try {
    const { worker } = JSON.parse(decode(data)) as { worker?: unknown };
    return typeof worker === "string" && worker !== "" ? worker : undefined;
  } catch {
    return undefined;
  }
}
