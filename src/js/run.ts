import { BatchDecoder } from "./batch.js";
import type { CoreBatch, CoreRun } from "./core.js";
import { CrabletError, crossing, fromCore, invalidInput, messageOf } from "./error.js";
import { type AgentEvent, innermost, type ToolCall } from "./event.js";
import { toJson } from "./json.js";
import type { Life } from "./life.js";
import { contentOf, type AssistantMessage, type Input, type Message, type StopReason, type Usage } from "./message.js";
import { eventStream } from "./event-stream.js";
import { type PartialOutput, PartialOutputReader, type RunOutput } from "./output.js";
import { notify } from "./notify.js";
import { type MaybePromise, outputOf, type ToolSet } from "./tool.js";
import { Transcript } from "./transcript.js";
import {
  uiEventStream,
  type UIMessageChunk,
  type UIMessageStreamOptions,
  UIMessageWriter,
} from "./ui-message-stream.js";

/** One model call and its tools. */
export interface Step {
  readonly index: number;
  readonly message: AssistantMessage;
  readonly usage: Usage;
}

/** How a run ended. */
export interface RunResult<Output = unknown> {
  /** The text of the last answer. */
  readonly text: string;
  /**
   * What the `output` of the run asked for, as its validator made it. Also `undefined` when the run was suspended, or ended
   * by a tool or by `stopWhen`.
   */
  readonly output: Output;
  /** What the run added to the conversation. */
  readonly messages: readonly Message[];
  readonly steps: readonly Step[];
  /** Tokens of the run. */
  readonly usage: Usage;
  /** Why it ended. `suspended`: calls wait for an approval, or for the result of a client-side tool. */
  readonly stopReason: StopReason;
}

/** Decides about a call that needs an approval: whether it may run. What it throws denies the call. */
export type Approve<T extends ToolSet = ToolSet> = (
  call: ToolCall<T>,
  context: { readonly signal: AbortSignal },
) => MaybePromise<boolean>;

/** What became of a steered message. */
export type SteerOutcome = "delivered" | "dropped";

/** How a run ended; `isTold` once a reader needs not be told of the error any more. */
type Outcome<Output> = { readonly result: RunResult<Output> } | { readonly error: unknown; isTold: boolean };

/** @internal What a run is made of. */
export interface RunSource {
  /** What it shall end with. */
  readonly output: RunOutput | undefined;
  /** Starts the run. */
  open(): Promise<{ readonly core: CoreRun; readonly life: Life }>;
  /** Shows what happened, before the reader of the run sees it. */
  observe(events: readonly AgentEvent[]): void;
  /** The run is over, and its memory released. An abort is no error. */
  over(error: unknown): void;
  /** The agent's own observer of events. */
  readonly onEvent: ((event: AgentEvent) => unknown) | undefined;
  /** Whether somebody else than a reader of the run waits for what happens. */
  isWatched(): boolean;
}

/**
 * One prompt being worked on.
 *
 * It has one reader: `for await`, `textStream`, `toReadableStream()` or `toResponse()`. Reading is what makes it go on, so a
 * slow reader pauses the network. Leaving the loop aborts the run. Without a reader, awaiting `result` makes it go on, and
 * no event is kept.
 *
 * An aborted run gives its closing events and ends. A run that fails gives `run-end` with the error, then the loop throws
 * that error. One that cannot begin, since an MCP server of its agent cannot be reached, throws without an event.
 */
export class Run<T extends ToolSet = ToolSet, Output = unknown>
  implements AsyncIterable<AgentEvent<T>>, AsyncDisposable
{
  readonly #source: RunSource;
  readonly #approve: Approve | undefined;
  readonly #controller = new AbortController();
  readonly #decoder = new BatchDecoder();
  readonly #transcript = new Transcript();
  readonly #steps: Step[] = [];
  readonly #result: Promise<RunResult<Output>>;
  #output: unknown;
  #settle!: { resolve(result: RunResult<Output>): void; reject(reason: unknown): void };
  #core: CoreRun | undefined;
  #life: Life | undefined;
  /** The first batch is asked for at once, so that the run starts without a reader. */
  #pending: Promise<AgentEvent[] | undefined> | undefined;
  #mode: "unread" | "read" | "drained" = "unread";
  /** Steered messages whose outcome is not known yet. */
  readonly #steered = new Map<string, (outcome: SteerOutcome) => void>();
  #approvals = 0;
  /** Whether nothing was decided since the run said that it waits. */
  #isWaiting = false;
  #isOver = false;
  #outcome: Outcome<Output> | undefined;
  #unlisten: (() => void) | undefined;

  /** @internal */
  constructor(
    source: RunSource,
    options: { readonly signal?: AbortSignal | undefined; readonly approve?: Approve | undefined },
  ) {
    this.#source = source;
    this.#approve = options.approve;
    this.#result = new Promise((resolve, reject) => (this.#settle = { resolve, reject }));
    this.#result.catch(() => {});
    this.#listen(options.signal);
    this.#pending = this.#pull();
    this.#pending.catch(() => {});
  }

  /**
   * The outcome. Rejects with what ended the run: a `CrabletError`, or `signal.reason` when it was aborted. Never an
   * unhandled rejection.
   */
  get result(): Promise<RunResult<Output>> {
    // A loop that begins in the same turn comes first.
    queueMicrotask(() => this.#drain());
    return this.#result;
  }

  /** Only the text, as it arrives. */
  get textStream(): ReadableStream<string> & AsyncIterable<string> {
    return iterable(
      this.#stream((events) => {
        let text = "";
        for (const event of events) if (event.type === "text-delta") text += event.delta;
        return text === "" ? [] : [text];
      }),
    );
  }

  /**
   * The output while it is written: an object of which more and more is there. The last one is whole and not checked yet;
   * `result` has the one that is.
   *
   * @throws CrabletError `invalid-input` for a run without `output`.
   */
  get partialOutputStream(): ReadableStream<PartialOutput<Output>> & AsyncIterable<PartialOutput<Output>> {
    const { output } = this.#source;
    if (output === undefined)
      throw invalidInput("this run has no output: give it one, as in run(prompt, { output: schema })");
    const reader = new PartialOutputReader(output);
    return iterable(this.#stream((events) => reader.read(events as readonly AgentEvent[]) as PartialOutput<Output>[]));
  }

  /**
   * The events as a stream. Cancelling it aborts the run. With `untilSuspended` it also ends when the run waits for an approval
   * or a client-side tool; `session.resume()` then goes on with it.
   */
  toReadableStream({
    untilSuspended = false,
  }: {
    readonly untilSuspended?: boolean;
  } = {}): ReadableStream<AgentEvent<T>> {
    return this.#stream((events) => events, untilSuspended ? { suspended: () => [] } : {});
  }

  /**
   * The events as an HTTP answer of Server-Sent Events, for the handler of a server or an edge worker; `readEvents` reads it.
   * It ends when the run ends or waits for an approval. When the client goes away the run is aborted.
   */
  toResponse(init: ResponseInit = {}): Response {
    const encoder = new TextEncoder();
    const body = this.#stream((events) => [encoder.encode(eventStream(events))], { suspended: () => [] });
    return streamResponse(body, init);
  }

  /**
   * The run as chunks of the AI SDK's UI message stream. It ends when the run ends or waits for an approval or a client-side
   * tool; an error is a chunk. Cancelling it aborts the run.
   */
  toUIMessageStream(options: UIMessageStreamOptions = {}): ReadableStream<UIMessageChunk> {
    return this.#uiStream(options, (chunks) => chunks);
  }

  /**
   * The run as an HTTP answer for `useChat` and the other clients of the AI SDK: their UI message stream, version 1. When the
   * client goes away the run is aborted. `chatHandler` of `crablet/ui` reads what such a client posts.
   */
  toUIMessageStreamResponse(init: ResponseInit & UIMessageStreamOptions = {}): Response {
    const encoder = new TextEncoder();
    const body = this.#uiStream(init, (chunks, isOver) => [
      encoder.encode(uiEventStream(chunks) + (isOver ? "data: [DONE]\n\n" : "")),
    ]);
    const response = streamResponse(body, init);
    response.headers.set("x-vercel-ai-ui-message-stream", "v1");
    return response;
  }

  /**
   * Adds a user message, delivered before the next step. The promise tells what became of it, as the run is read; it never
   * rejects.
   *
   * @throws CrabletError `invalid-input` when the run is over or has not started; `limit` when 64 messages wait already.
   */
  steer(input: Input): Promise<SteerOutcome> {
    const id = this.#inCore((core) => core.steer(toJson(contentOf(input), "the message")));
    return new Promise((resolve) => this.#steered.set(id, resolve));
  }

  /**
   * Adds a user message that is worked on when the run would otherwise end. Gives its id, with which the session can edit it
   * while it waits.
   *
   * @throws CrabletError `invalid-input` when the run is over or has not started; `limit` when 64 messages wait already.
   */
  followUp(input: Input): string {
    return this.#inCore((core) => core.followUp(toJson(contentOf(input), "the message")));
  }

  /**
   * Gives the result of a call of a client-side tool, one without `execute`; `toolOutput` for files and failures.
   *
   * @throws CrabletError `invalid-input` when no such call waits.
   */
  toolResult(callId: string, output: unknown): void {
    this.#isWaiting = false;
    this.#inCore((core) => core.toolResult(callId, toJson(outputOf(output), "the result")));
  }

  /**
   * Decides about a call that waits for an approval. The reason of a denial is told to the model. With the `inputHash` of the
   * request, the decision holds for no other input.
   *
   * @throws CrabletError `invalid-input` when the call does not wait, the input is another, or the run has not started or is over.
   */
  approve(callId: string, allow = true, reason?: string, inputHash?: string): void {
    this.#isWaiting = false;
    this.#inCore((core) => core.approve(callId, allow, reason, inputHash));
  }

  /** Stops the run: requests are closed and the signals of tools abort before this returns. */
  abort(reason?: unknown): void {
    if (this.#isOver || this.#controller.signal.aborted) return;
    this.#controller.abort(reason);
    this.#core?.abort(reason === undefined ? undefined : messageOf(reason));
    this.#drain();
  }

  /** Aborts the run unless it is over, and waits until it is. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.abort();
    await this.#result.catch(() => {});
  }

  /**
   * The events, once. Leaving the loop aborts the run.
   *
   * @throws CrabletError `invalid-input` when the events are read elsewhere already, or were discarded since `result` was awaited.
   */
  [Symbol.asyncIterator](): AsyncIterator<AgentEvent<T>, undefined> {
    this.#claim();
    let events: readonly AgentEvent<T>[] = [];
    let position = 0;
    /** Calls that are not answered yet, and the last of them. */
    let waiting = 0;
    let last: Promise<IteratorResult<AgentEvent<T>, undefined>>;
    const next = async (): Promise<IteratorResult<AgentEvent<T>, undefined>> => {
      while (position >= events.length) {
        const batch = await this.#take();
        if (batch === undefined) {
          this.#tell();
          return { done: true, value: undefined };
        }
        events = batch as readonly AgentEvent<T>[];
        position = 0;
      }
      return { done: false, value: events[position++] as AgentEvent<T> };
    };
    const answered = (): void => {
      waiting -= 1;
    };
    return {
      next: () => {
        const event = waiting === 0 ? events[position] : undefined;
        if (event !== undefined) {
          position += 1;
          return Promise.resolve({ done: false, value: event });
        }
        // Calls that do not wait for the one before are answered in order.
        waiting += 1;
        last = waiting === 1 ? next() : last.then(next, next);
        last.then(answered, answered);
        return last;
      },
      return: async () => {
        events = [];
        await this.#leave();
        return { done: true, value: undefined };
      },
    };
  }

  /** At the end: throws, once, what made the run fail. */
  #tell(): void {
    const outcome = this.#outcome;
    if (outcome === undefined || "result" in outcome || outcome.isTold) return;
    outcome.isTold = true;
    throw outcome.error;
  }

  /** The next batch. */
  #take(): Promise<AgentEvent[] | undefined> {
    const pending = this.#pending ?? this.#pull();
    this.#pending = undefined;
    return pending;
  }

  async #pull(): Promise<AgentEvent[] | undefined> {
    if (this.#isOver) return undefined;
    try {
      const core = this.#core ?? (await this.#open());
      const batch = await this.#batch(core);
      if (batch.length === 0) {
        this.#finish();
        return undefined;
      }
      let events = this.#decoder.decode(batch);
      const last = events.at(-1);
      // Waited for where there is something to wait for: each wait costs every batch of a stream.
      if (last?.type === "run-end" && last.output !== undefined)
        events = [...events.slice(0, -1), await this.#withOutput(last)];
      this.#observe(events);
      return events;
    } catch (thrown) {
      this.#fail(fromCore(thrown));
      return undefined;
    }
  }

  /** The last event with the output in the form that the caller gets. */
  async #withOutput(end: AgentEvent & { type: "run-end" }): Promise<AgentEvent> {
    const { output } = this.#source;
    const value = output === undefined ? end.output : output.unwrap(end.output);
    try {
      this.#output = output === undefined ? value : await output.validate(value);
    } catch (thrown) {
      // The validator has changed its mind: the run has its one end all the same.
      const { output: _, ...rest } = end;
      const error = { kind: "protocol", message: messageOf(thrown), retryable: false };
      return { ...rest, stopReason: "error", error };
    }
    return { ...end, output: value };
  }

  #batch(core: CoreRun): Promise<CoreBatch | []> {
    return new Promise((resolve, reject) => {
      // A trap in the background tells nobody, so the promise would never settle.
      const forget = this.#life?.onEnd(reject);
      core.next((...given) => {
        forget?.();
        resolve(given);
      });
    });
  }

  async #open(): Promise<CoreRun> {
    const { signal } = this.#controller;
    signal.throwIfAborted();
    const { core, life } = await this.#source.open();
    this.#core = core;
    this.#life = life;
    if (signal.aborted) core.abort(messageOf(signal.reason));
    return core;
  }

  #observe(events: readonly AgentEvent[]): void {
    const { onEvent } = this.#source;
    this.#isWaiting = events.at(-1)?.type === "run-suspended";
    for (const event of events) {
      if (onEvent !== undefined) notify("onEvent", () => onEvent(event));
      this.#transcript.apply(event);
      switch (event.type) {
        case "step-end":
          this.#steps.push({ index: event.step, message: event.message, usage: event.usage });
          break;
        case "approval-request":
          this.#ask(event);
          break;
        case "sub-agent-event": {
          const within = innermost(event);
          if (within.type === "approval-request") this.#ask(within);
          break;
        }
        case "steer-delivered":
        case "steer-dropped":
          this.#steered.get(event.messageId)?.(event.type === "steer-delivered" ? "delivered" : "dropped");
          this.#steered.delete(event.messageId);
          break;
        case "run-end":
          this.#end(event);
          break;
        default:
      }
    }
    this.#source.observe(events);
    if (this.#outcome !== undefined) this.#finish();
    else if (this.#mode === "drained" && !this.#source.isWatched() && this.#isSuspended()) this.#suspend();
  }

  /** Whether nothing more happens until somebody else decides about an approval. */
  #isSuspended(): boolean {
    return this.#approvals === 0 && this.#isWaiting;
  }

  #end({ text, usage, stopReason, error }: AgentEvent & { type: "run-end" }): void {
    if (error === undefined && stopReason !== "aborted") {
      this.#outcome = { result: this.#resultOf(text, usage, stopReason) };
    } else if (this.#controller.signal.aborted) {
      this.#outcome = { error: this.#controller.signal.reason, isTold: true };
    } else {
      const reason = error ?? { kind: "aborted", message: "the run was aborted" };
      this.#outcome = { error: new CrabletError(reason), isTold: false };
    }
  }

  #resultOf(text: string, usage: Usage, stopReason: StopReason): RunResult<Output> {
    const output = this.#output as Output;
    return { text, output, messages: this.#transcript.messages, steps: this.#steps, usage, stopReason };
  }

  /** Asks the `approve` function. */
  #ask(event: AgentEvent & { type: "approval-request" }): void {
    const approve = this.#approve;
    if (approve === undefined) return;
    const { type: _type, runId: _run, step: _step, ...call } = event;
    this.#approvals += 1;
    const decide = async (): Promise<void> => {
      let allow = false;
      let reason: string | undefined;
      try {
        allow = await approve(call, { signal: this.#controller.signal });
      } catch (thrown) {
        reason = messageOf(thrown);
      }
      this.#approvals -= 1;
      this.#isWaiting = false;
      // The run may have ended meanwhile, or another may have decided.
      if (!this.#isOver) this.#core?.approve(call.callId, allow === true, reason, call.inputHash);
    };
    void decide().catch(() => {});
  }

  /** Lets go of a run that waits for approvals: the conversation keeps it, and `session.resume()` goes on with it. */
  #suspend(): void {
    this.#core?.detach();
    const texts =
      this.#steps.at(-1)?.message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])) ?? [];
    this.#outcome = { result: this.#resultOf(texts.join(""), {}, "suspended") };
    this.#finish();
  }

  #fail(error: unknown): void {
    const isAbort = this.#controller.signal.aborted && error === this.#controller.signal.reason;
    this.#outcome ??= { error, isTold: isAbort };
    this.#finish();
  }

  /** Releases everything, and only then tells the outcome: whoever waits for it may send the next prompt at once. */
  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#unlisten?.();
    try {
      this.#core?.free();
    } catch {
      // The instance is dead; there is nothing left to release.
    }
    this.#core = undefined;
    this.#outcome ??= {
      error: new CrabletError({ kind: "internal", message: "the run ended without an end event" }),
      isTold: false,
    };
    for (const resolve of this.#steered.values()) resolve("dropped");
    this.#steered.clear();
    const outcome = this.#outcome;
    this.#source.over("error" in outcome && !this.#controller.signal.aborted ? outcome.error : undefined);
    if ("result" in outcome) this.#settle.resolve(outcome.result);
    else this.#settle.reject(outcome.error);
  }

  #claim(): void {
    if (this.#mode !== "unread") {
      throw invalidInput(
        this.#mode === "read"
          ? "this run is being read already: it has one reader"
          : "this run's events are gone: awaiting `result` before reading discards them. Begin the loop first",
      );
    }
    this.#mode = "read";
  }

  /** Aborts the run. One that has begun is over then, so that the session takes the next prompt. */
  async #leave(): Promise<void> {
    if (this.#isOver) return;
    const hasBegun = this.#core !== undefined;
    this.#controller.abort(new CrabletError({ kind: "aborted", message: "the reader of the run left" }));
    this.#core?.abort("the reader of the run left");
    this.#mode = "unread";
    this.#drain();
    if (hasBegun) await this.#result.catch(() => {});
  }

  /** Lets the run go on without a reader. */
  #drain(): void {
    if (this.#mode !== "unread") return;
    this.#mode = "drained";
    void (async () => {
      while ((await this.#take()) !== undefined);
    })();
  }

  /** @internal Used by a session whose state somebody watches. */
  drainIfUnread(): void {
    queueMicrotask(() => this.#drain());
  }

  #inCore<Value>(call: (core: CoreRun) => Value): Value {
    return crossing(() => call(this.#live()));
  }

  #live(): CoreRun {
    if (this.#core === undefined)
      throw invalidInput(this.#isOver ? "the run is over" : "the run has not started yet: wait for its first event");
    return this.#core;
  }

  #listen(signal: AbortSignal | undefined): void {
    if (signal === undefined) return;
    if (signal.aborted) {
      this.#controller.abort(signal.reason);
      return;
    }
    const abort = (): void => this.abort(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    this.#unlisten = () => signal.removeEventListener("abort", abort);
  }

  #uiStream<Item>(
    options: UIMessageStreamOptions,
    convert: (chunks: readonly UIMessageChunk[], isOver: boolean) => readonly Item[],
  ): ReadableStream<Item> {
    const writer = new UIMessageWriter(options);
    return this.#stream(
      (events) => {
        const chunks = writer.write(events as readonly AgentEvent[]);
        if (writer.isStopped) this.abort(new CrabletError({ kind: "aborted", message: "the reader cannot take back" }));
        return chunks.length === 0 ? [] : convert(chunks, false);
      },
      {
        suspended: () => convert(writer.suspend(), true),
        over: (thrown) => convert(thrown === undefined ? [] : writer.fail(thrown), true),
      },
    );
  }

  /**
   * The run as a stream of something else.
   *
   * @param ends `suspended`: it ends with these when the run waits, else it goes on to the end of the run; `over`: it ends with
   *   these, also when the run failed, else it fails as the run does.
   */
  #stream<Item>(
    convert: (events: readonly AgentEvent<T>[]) => readonly Item[],
    ends: {
      readonly suspended?: () => readonly Item[];
      readonly over?: (thrown: unknown) => readonly Item[];
    } = {},
  ): ReadableStream<Item> {
    this.#claim();
    const { suspended, over } = ends;
    const next = async (): Promise<{ items: readonly Item[]; isLast: boolean }> => {
      const batch = (await this.#take()) as readonly AgentEvent<T>[] | undefined;
      if (batch === undefined) {
        try {
          this.#tell();
        } catch (thrown) {
          if (over === undefined) throw thrown;
          return { items: over(thrown), isLast: true };
        }
        return { items: over?.(undefined) ?? [], isLast: true };
      }
      const items = convert(batch);
      if (suspended === undefined || !this.#isSuspended()) return { items, isLast: false };
      this.#suspend();
      return { items: [...items, ...suspended()], isLast: true };
    };
    return new ReadableStream<Item>(
      {
        pull: async (controller) => {
          for (;;) {
            const { items, isLast } = await next();
            for (const item of items) controller.enqueue(item);
            if (isLast) controller.close();
            if (isLast || items.length > 0) return;
          }
        },
        cancel: () => this.#leave(),
      },
      { highWaterMark: 0 },
    );
  }
}

/** An answer of Server-Sent Events. */
function streamResponse(body: ReadableStream<Uint8Array>, init: ResponseInit): Response {
  const { status = 200, statusText = "" } = init;
  const headers = new Headers(init.headers);
  if (!headers.has("content-type")) headers.set("content-type", "text/event-stream; charset=utf-8");
  if (!headers.has("cache-control")) headers.set("cache-control", "no-cache, no-transform");
  return new Response(body, { status, statusText, headers });
}

/** Safari's streams are not iterable yet. */
function iterable<Item>(stream: ReadableStream<Item>): ReadableStream<Item> & AsyncIterable<Item> {
  if (Symbol.asyncIterator in stream) return stream as ReadableStream<Item> & AsyncIterable<Item>;
  async function* iterate(): AsyncGenerator<Item, undefined> {
    const reader = (stream as ReadableStream<Item>).getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        yield value;
      }
    } finally {
      await reader.cancel();
    }
  }
  return Object.assign(stream as ReadableStream<Item>, { [Symbol.asyncIterator]: iterate });
}
