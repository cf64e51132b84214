import { messageOf } from "./error.js";

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

  /** `receive` takes the JSON text of a message. What it throws is told to `report`. */
  constructor(port: McpPort, receive: (message: string) => void, report: (message: string) => void) {
    this.#port = port;
    this.#listener = ({ data }) => {
      try {
        receive(typeof data === "string" ? data : JSON.stringify(data));
      } catch (thrown) {
        report(messageOf(thrown));
      }
    };
    port.addEventListener("message", this.#listener);
    port.start?.();
  }

  send(message: string): void {
    this.#port.postMessage(JSON.parse(message));
  }

  end(): void {
    this.#port.removeEventListener?.("message", this.#listener);
  }
}
