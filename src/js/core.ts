import type { ErrorInfo } from "./error.js";
import type { CallModel } from "./hooks.js";
import type { Life } from "./life.js";
import type { McpEraRecord } from "./mcp-protocol.js";

/**
 * What the module exports and what it calls, as `src/bindings` defines it. Structured values cross as JSON text, errors as
 * objects; events cross once a batch.
 *
 * @internal
 */
export interface Core {
  readonly AgentHandle: new (config: string, functions: CoreFunctions) => CoreAgent;
  readonly McpHandle: {
    new (config: string, functions: CoreServerFunctions): CoreMcp;
    /** Resolves with `McpPairing`. */
    pair(url: string, code: string, socket: typeof WebSocket | undefined, ...settle: Settle): void;
  };
  readonly SseHandle: new () => CoreSse;
  readonly CancelHandle: new () => CoreCancel;
  readonly life: Life;
}

/** @internal */
export interface CoreAgent {
  addServer(server: CoreMcp, ...settle: Settle): void;
  addAgent(name: string, agent: CoreAgent): void;
  /** `journal` is given the lines to add to the saved text; without it, `changes` is asked. */
  conversation(saved: string | undefined, journal: ((lines: string) => Promise<void>) | undefined): CoreConversation;
  free(): void;
}

/** @internal */
export interface CoreConversation {
  send(content: string): CoreRun;
  resume(): CoreRun | undefined;
  queued(): string;
  editQueued(id: string, content: string): void;
  unqueue(id: string): void;
  snapshot(): string;
  /** The lines that are new since the last time, or the whole. */
  changes(): string;
  free(): void;
}

/** @internal */
export interface CoreRun {
  /** Delivers the next batch by one call; without arguments at the end. */
  next(deliver: (...batch: CoreBatch | []) => void): void;
  abort(reason: string | undefined): void;
  /** Gives the id of the message. */
  steer(content: string): string;
  /** Gives the id of the message. */
  followUp(content: string): string;
  approve(callId: string, allow: boolean, reason: string | undefined, inputHash: string | undefined): void;
  toolResult(callId: string, output: string): void;
  detach(): void;
  free(): void;
}

/**
 * The events of one wake-up: the deltas' text joined, a table of `[kind, block, length in UTF-16 units]…` in the order of the
 * events, and the other events as the JSON text of a list.
 *
 * @internal
 */
export type CoreBatch = [text: string, table: Uint32Array, others: string | undefined];

/**
 * How a call that takes time is cancelled, and what it calls when it is done. Not a promise: Node 20 crashes when it
 * deoptimises a call of an export that returns a JavaScript value.
 *
 * @internal
 */
export type Settle = [cancel: CoreCancel, resolve: (value: string) => void, reject: (thrown: unknown) => void];

/** @internal */
export interface CoreMcp {
  /** Resolves with `CoreServer`. */
  ready(...settle: Settle): void;
  list(of: string, refresh: boolean, ...settle: Settle): void;
  /** Resolves with the result as the server sent it. */
  request(request: string, progress: ((data: string) => void) | undefined, ...settle: Settle): void;
  notify(method: string): void;
  receive(message: string): void;
  /** A request to a server at a port has no answer: a `PortFailure`. */
  fail(failure: string): void;
  close(...settle: Settle): void;
  free(): void;
}

/** @internal */
export interface CoreSse {
  push(bytes: Uint8Array): string;
  free(): void;
}

/** @internal */
export interface CoreCancel {
  cancel(): void;
  free(): void;
}

/** @internal What the module calls of an agent's functions. */
export interface CoreFunctions {
  readonly fetch: typeof fetch | undefined;
  /** Models have numbers: 0 is the agent's own, then those of `fallbackModels`, then those that hooks chose. */
  credentials(model: number): Promise<string>;
  execute(name: string, callId: string, input: string, progress: (data: string) => void): CoreExecution;
  validate(name: string, input: string): Promise<string | undefined>;
  ask(question: string, callModel: CallModel): Promise<string>;
  model(model: number, request: string): { next(): Promise<string | undefined>; cancel(): void };
}

/** @internal */
export interface CoreRequest {
  readonly method: string;
  readonly params: unknown;
  readonly idleTimeoutMs?: number;
  readonly timeoutMs?: number;
  readonly refresh?: boolean;
}

/** @internal */
export interface CoreServer {
  readonly info?: { readonly name: string; readonly title?: string; readonly version: string };
  readonly capabilities?: Readonly<Record<string, unknown>>;
  readonly instructions?: string;
}

/** @internal */
export type CoreServerEvent =
  | { readonly type: "connected"; readonly server: CoreServer; readonly record: McpEraRecord; readonly resume?: string }
  | { readonly type: "notification"; readonly method: string; readonly params?: Readonly<Record<string, unknown>> }
  | { readonly type: "warning"; readonly message: string }
  | { readonly type: "closed"; readonly error: ErrorInfo };

/** @internal What the module calls of an MCP server's functions. */
export interface CoreServerFunctions {
  readonly fetch: typeof fetch | undefined;
  readonly WebSocket: typeof WebSocket | undefined;
  request(message: string): CoreExecution;
  /** A message for a server at a port; `undefined` at the end. */
  send(message: string | undefined): void;
  answer(method: string, params: string): CoreExecution;
  /** Answers a `CoreAuthQuestion`. */
  auth(question: string): CoreExecution;
  event(event: string): void;
}

/** @internal What an authorization needs of the caller. */
export type CoreAuthQuestion =
  | { readonly type: "redirect-url" }
  | { readonly type: "authorize"; readonly url: string }
  | {
      readonly type: "assertion";
      readonly issuer: string;
      readonly tokenEndpoint: string;
      readonly resource?: string;
      readonly scope: string;
    }
  | { readonly type: "load"; readonly key: string }
  | { readonly type: "save"; readonly key: string; readonly value: string | null };

/** @internal A piece of work of the caller that can be cancelled. */
export interface CoreExecution {
  readonly result: Promise<string | undefined>;
  cancel(): void;
}
