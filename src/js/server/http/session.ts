import type { Connection } from "../connection.js";
import { type Fields, fields } from "../protocol.js";
import type { Exchange } from "./exchange.js";
import { Streams } from "./streams.js";

/** A session of the handshake era: a connection, and the streams that its client has open. */
export class Session {
  readonly #streams = new Streams();
  /** The requests at work, by the text of their id. */
  readonly #exchanges = new Map<string, number>();
  readonly #connection: Connection;
  readonly #caller: string | undefined;
  #used = Date.now();
  #isInitialized = false;

  constructor(
    open: (send: (message: Fields, about?: string | number) => void) => Connection,
    caller: string | undefined,
  ) {
    this.#connection = open((message, about) => this.#say(message, about));
    this.#caller = caller;
  }

  get isInitialized(): boolean {
    return this.#isInitialized;
  }

  /** When it was used last; `undefined` while somebody waits for it. */
  get unusedSince(): number | undefined {
    return this.#streams.areUsed ? undefined : this.#used;
  }

  isOf(caller: string | undefined): boolean {
    return this.#caller === caller;
  }

  use(): void {
    this.#used = Date.now();
  }

  /** Hands over a request; why it is refused, if it is. */
  ask(id: string | number, message: Fields, exchange: Exchange): string | undefined {
    const key = JSON.stringify(id);
    if (this.#exchanges.has(key)) return "a request of this id is at work already";
    if (!this.#streams.open(exchange)) return "this session has too many open requests and streams; wait for answers";
    this.#exchanges.set(key, exchange.number);
    exchange.onLeave(() => this.use());
    this.#connection.receive(message);
    return undefined;
  }

  /** Hands over what has no answer. */
  tell(message: Fields): void {
    if (message.method === "notifications/cancelled") {
      const key = JSON.stringify(fields(message.params)?.requestId);
      const number = this.#exchanges.get(key);
      this.#exchanges.delete(key);
      this.#connection.receive(message);
      if (number !== undefined) this.#streams.end(number);
    } else this.#connection.receive(message);
  }

  /** Opens the session's own stream, or takes up one after an event; `false` when that is no longer possible. */
  listen(exchange: Exchange, after: Parameters<Streams["listen"]>[1]): boolean {
    exchange.onLeave(() => this.use());
    return this.#streams.listen(exchange, after);
  }

  close(): void {
    this.#connection.close();
    this.#streams.close();
  }

  #say(message: Fields, about: string | number | undefined): void {
    const text = JSON.stringify(message);
    if (typeof message.method === "string") {
      const number = about === undefined ? undefined : this.#exchanges.get(JSON.stringify(about));
      this.#streams.tell(number, text, "id" in message);
      return;
    }
    this.#isInitialized ||= "result" in message;
    const key = JSON.stringify(message.id);
    const number = this.#exchanges.get(key);
    this.#exchanges.delete(key);
    this.use();
    if (number !== undefined) this.#streams.answer(number, text);
  }
}
