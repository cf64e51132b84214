/**
 * What is used of a connection of `@nats-io/nats-core`, which the caller makes: `connect` of `@nats-io/transport-node`, or
 * `wsconnect` in a browser or worker.
 */
export interface NatsConnection {
  /** What the server said of itself; its limit of a message's bytes is kept to. */
  readonly info?: { readonly max_payload: number } | undefined;
  /** Sends a message. */
  publish(subject: string, payload?: Uint8Array | string, options?: { readonly reply?: string }): void;
  /** Gives each message of a subject to the callback. */
  subscribe(
    subject: string,
    options: { readonly callback: (error: Error | null, message: NatsMessage) => void },
  ): {
    /** Gives no more of them. */
    unsubscribe(): void;
  };
  /** What happens on the connection; errors of permissions are looked for in it. */
  status?(): AsyncIterable<{ readonly type: string; readonly error?: Error }>;
  /** Settles when the connection is closed for good. */
  closed(): Promise<unknown>;
  /** Whether it is. */
  isClosed(): boolean;
}

/** What is used of a message. */
export interface NatsMessage {
  /** Where it came in. */
  readonly subject: string;
  /** Its body. */
  readonly data: Uint8Array;
  /** Its headers; `code` is a status of the NATS server, such as 503 where nobody listens. */
  readonly headers?:
    | {
        readonly code: number;
        /** A header by its name; empty when there is none. */
        get(name: string): string;
      }
    | undefined;
}

/**
 * How a service is spoken to that does not take JSON-RPC messages as they are. Each function may throw, which fails the
 * request with what it threw.
 */
export interface NatsEnvelope {
  /**
   * The body to publish for a message of the client, a JSON-RPC object. `{ answer }` is the result of a request that the
   * service does not know, such as `initialize`, and `{ error }` its refusal; nothing is published then. `undefined` drops a
   * notification.
   */
  encode(
    message: NatsRequestMessage,
  ): Uint8Array | string | { readonly answer: unknown } | { readonly error: RpcFailure } | undefined;
  /** The answer in the body that came back: a JSON-RPC response, whose id may be any, since the request's is put there. */
  decode(body: Uint8Array, message: NatsRequestMessage): unknown;
}

/** A JSON-RPC message of a client. */
export interface NatsRequestMessage {
  readonly jsonrpc: "2.0";
  /** None of a notification. */
  readonly id?: string | number;
  /** None of an answer to the server. */
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

/** The `error` of a JSON-RPC response. */
export interface RpcFailure {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}
