// Who has a conversation. It is written down before anything is done about it, so that a stopped object knows how to go on.

export type Custody =
  /** This object: it works on it. */
  | { readonly kind: "here" }
  /** A browser, until its lease is over or somebody takes it back; what it writes is kept here all the same. */
  | { readonly kind: "lent"; readonly ticket: string; readonly until: number }
  /** Nobody: it is on its way to another object, which may have it already. */
  | { readonly kind: "leaving"; readonly to: string; readonly ticket: string }
  /** Another object. */
  | { readonly kind: "gone"; readonly to: string };

/** Whose conversation it is, and its name in the list of this user. */
export type Key = { readonly user: string; readonly name: string };

export class Records {
  readonly #kv: SyncKvStorage;

  constructor({ kv }: DurableObjectStorage) {
    this.#kv = kv;
  }

  get custody(): Custody {
    return this.#kv.get<Custody>("custody") ?? { kind: "here" };
  }

  set custody(custody: Custody) {
    this.#kv.put("custody", custody);
  }

  get key(): Key | undefined {
    return this.#kv.get<Key>("key");
  }

  set key(key: Key | undefined) {
    this.#kv.put("key", key);
  }

  /** The ticket of the move that brought the conversation here. */
  get arrivedBy(): string | undefined {
    return this.#kv.get<string>("arrived");
  }

  set arrivedBy(ticket: string | undefined) {
    this.#kv.put("arrived", ticket);
  }

  /** How often a run was taken up without coming to an end. */
  get tries(): number {
    return this.#kv.get<number>("tries") ?? 0;
  }

  set tries(tries: number) {
    this.#kv.put("tries", tries);
  }

  /** The time before which a run is not taken up by itself, in milliseconds of Unix time. */
  get retryAt(): number {
    return this.#kv.get<number>("retry") ?? 0;
  }

  set retryAt(time: number) {
    this.#kv.put("retry", time);
  }

  /** When somebody did something here the last time, in milliseconds of Unix time. */
  get usedAt(): number {
    return this.#kv.get<number>("used") ?? Date.now();
  }

  set usedAt(time: number) {
    this.#kv.put("used", time);
  }
}
