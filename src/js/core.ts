/**
 * What the module exports and what it calls, as `src/bindings` defines it. Structured values cross as JSON text; events cross
 * once a batch.
 *
 * @internal
 */
export interface Core {
  readonly AgentHandle: new (config: string, functions: CoreFunctions) => CoreAgent;
  readonly connectMcp: (config: string, functions: CoreServerFunctions, cancel: CoreCancel) => Promise<CoreMcp>;
  readonly CancelHandle: new () => CoreCancel;
}

/** @internal */
export interface CoreAgent {
  addServer(name: string, connection: CoreMcp): Promise<void>;
  conversation(snapshot: string | undefined): CoreConversation;
  free(): void;
}

/** @internal */
export interface CoreConversation {
  send(content: string): CoreRun;
  resume(): CoreRun | undefined;
  snapshot(): string;
  free(): void;
}

/** @internal */
export interface CoreRun {
  /** Delivers the next batch by one call; without arguments at the end. */
  next(deliver: (...batch: CoreBatch | []) => void): void;
  abort(reason: string | undefined): void;
  steer(content: string): void;
  followUp(content: string): void;
  approve(callId: string, allow: boolean, reason: string | undefined): void;
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

/** @internal */
export interface CoreMcp {
  tools(): Promise<string>;
  callTool(
    name: string,
    input: string,
    cancel: CoreCancel,
    progress: ((data: string) => void) | undefined,
  ): Promise<string>;
  close(): Promise<void>;
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
  key(): Promise<string>;
  execute(name: string, callId: string, input: string, progress: (data: string) => void): CoreExecution;
  validate(name: string, input: string): Promise<string | undefined>;
  ask(question: string): Promise<string>;
  model(request: string): { next(): Promise<string | undefined>; cancel(): void };
}

/** @internal What the module calls of an MCP server's functions. */
export interface CoreServerFunctions {
  readonly fetch: typeof fetch | undefined;
  request(message: string): CoreExecution;
}

/** @internal A piece of work of the caller that can be cancelled. */
export interface CoreExecution {
  readonly result: Promise<string | undefined>;
  cancel(): void;
}
