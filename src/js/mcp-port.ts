import type { CoreMcp } from "./core.js";
import { type ErrorKind, messageOf } from "./error.js";

/**
 * A port that JSON-RPC messages go through in both directions, one object each: a `MessagePort`, a `Worker`, or a few lines
 * around anything else.
 */
export interface McpPort {
  /** Sends a message, an object. */
  postMessage(message: unknown): void;
  /** Calls the listener with each message that arrives. */
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
  /** Ends that; a port without it is heard until it is gone. */
  removeEventListener?(type: "message", listener: (event: { readonly data: unknown }) => void): void;
  /** Called once, where it is there: a `MessagePort` delivers nothing before. */
  start?(): void;
}

/** @internal A request that has no answer, and why. */
export interface PortFailure {
  readonly id: string | number;
  readonly kind: ErrorKind;
  readonly message: string;
  /** The peer's own word or number. */
  readonly code?: string;
}

/** @internal A port that knows why a request has no answer. */
export interface FailingPort extends McpPort {
  /** Calls the listener with each such request. */
  addFailureListener(listener: (failure: PortFailure) => void): void;
}

/** Two ports of one program: what is posted at one arrives at the other, in order and later. */
export function portPair(): readonly [McpPort, McpPort] {
  const listeners = [new Set<Listener>(), new Set<Listener>()] as const;
  const end = (own: Set<Listener>, other: Set<Listener>): McpPort => ({
    postMessage(message) {
      queueMicrotask(() => {
        for (const listener of other) listener({ data: message });
      });
    },
    addEventListener: (_type, listener) => void own.add(listener),
    removeEventListener: (_type, listener) => void own.delete(listener),
  });
  return [end(listeners[0], listeners[1]), end(listeners[1], listeners[0])];
}

type Listener = (event: { readonly data: unknown }) => void;

/** @internal A port in use by one connection. */
export class PortUse {
  readonly #port: McpPort;
  readonly #listener: Listener;
  #isHeard = false;

  /** `server` takes the JSON text of messages, and of each `PortFailure`. What it throws is told to `report`. */
  constructor(port: McpPort, server: Pick<CoreMcp, "receive" | "fail">, report: (message: string) => void) {
    const give = (taking: "receive" | "fail", data: unknown): void => {
      try {
        server[taking](typeof data === "string" ? data : JSON.stringify(data));
      } catch (thrown) {
        report(messageOf(thrown));
      }
    };
    this.#port = port;
    this.#listener = ({ data }) => give("receive", data);
    (port as Partial<FailingPort>).addFailureListener?.((failure) => give("fail", failure));
    this.#listen();
  }

  /** A connection that is made anew is heard again. */
  send(message: string): void {
    this.#listen();
    this.#port.postMessage(JSON.parse(message));
  }

  end(): void {
    this.#isHeard = false;
    this.#port.removeEventListener?.("message", this.#listener);
  }

  #listen(): void {
    if (this.#isHeard) return;
    this.#isHeard = true;
    this.#port.addEventListener("message", this.#listener);
    this.#port.start?.();
  }
}
