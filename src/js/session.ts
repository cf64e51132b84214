import type { AgentParts } from "./agent.js";
import type { CoreAgent, CoreConversation, CoreRun } from "./core.js";
import { checkOptions, CrabletError, crossing, type ErrorInfo, invalidInput, messageOf } from "./error.js";
import { type AgentEvent, innermost, type ToolCall } from "./event.js";
import { toJson } from "./json.js";
import type { Life } from "./life.js";
import { type AssistantMessage, contentOf, type Input, type Message } from "./message.js";
import { notify } from "./notify.js";
import type { RunOptions } from "./options.js";
import { type OutputOf, RunOutput } from "./output.js";
import { Run } from "./run.js";
import type { Place } from "./place.js";
import {
  contentsOf,
  forkText,
  labelLines,
  moveLines,
  type QueuedMessages,
  SavedText,
  type TreeEntry,
  treeOf,
} from "./saved-text.js";
import type { Schema } from "./schema.js";
import { outputOf, type ToolSet } from "./tool.js";
import { StreamingMessage, Transcript } from "./transcript.js";

/** What a session is doing. */
export type SessionStatus =
  | "idle"
  | "running"
  /** A run waits for `approve()`. */
  | "awaiting-approval"
  /** A run waits for `toolResult()`. */
  | "awaiting-result"
  /** A saved run is not finished: `resume()` goes on with it. */
  | "interrupted"
  /** The last run failed; a prompt is welcome. */
  | "error";

/** A call that waits for an approval. */
export type PendingApproval = ToolCall & {
  /** Names the input: a decision holds for no other. Not known of a restored session until `resume()`. */
  readonly inputHash?: string;
};

/** What a user interface shows of a session. Never changes: the same object until something happened. */
export interface SessionState {
  readonly status: SessionStatus;
  readonly messages: readonly Message[];
  /** The message that is being streamed. */
  readonly streaming: AssistantMessage | undefined;
  /** The calls that wait for an approval. */
  readonly pending: readonly PendingApproval[];
  /** The calls of client-side tools that wait for `toolResult()`. */
  readonly clientCalls: readonly ToolCall[];
  /** What made the last run fail. */
  readonly error: ErrorInfo | undefined;
}

/** A saved conversation: JSON that restores in every runtime. `snapshot` is the text that the Rust crate reads and writes. */
export interface SessionSnapshot {
  readonly version: 1;
  readonly snapshot?: string;
}

/**
 * A conversation with an agent. At most one run works on it at a time.
 *
 * `subscribe` and `getState` are the two arguments of React's `useSyncExternalStore`. While somebody is subscribed, runs go on
 * without a reader.
 */
export class Session<T extends ToolSet = ToolSet> {
  readonly #parts: AgentParts;
  readonly #isOnce: boolean;
  readonly #listeners = new Set<() => void>();
  #streaming = new StreamingMessage();
  #transcript: Transcript;
  readonly #saved: SavedText;
  readonly #place: Place | undefined;
  #held: Held | undefined;
  #run: Run<T, unknown> | undefined;
  /** The run in the module, once it has begun. */
  #begun: CoreRun | undefined;
  #status: SessionStatus = "idle";
  #pending: readonly PendingApproval[] = [];
  #clientCalls: readonly ToolCall[] = [];
  /** The tools of the calls of the step, sub-agents' included. */
  readonly #callNames = new Map<string, string>();
  /** What was decided before a run had begun. */
  #decisions: ((run: CoreRun) => void)[] = [];
  #error: ErrorInfo | undefined;
  #state: SessionState | undefined;

  /** @internal */
  constructor(
    parts: AgentParts,
    saved: SessionSnapshot | undefined,
    { isOnce = false, place }: { readonly isOnce?: boolean; readonly place?: Place | undefined } = {},
  ) {
    this.#parts = parts;
    this.#isOnce = isOnce;
    this.#place = place;
    this.#saved = new SavedText(textOf(saved));
    this.#transcript = this.#restored();
  }

  /**
   * Starts a run with this prompt.
   *
   * @throws CrabletError `busy` while a run is at work, waits or was interrupted: then `resume()` it first, and `abort()` what that
   *   gives to go on without it.
   */
  send<const S extends Schema | undefined = undefined>(input: Input, options: RunOptions<S> = {}): Run<T, OutputOf<S>> {
    const content = toJson(contentOf(input), "the prompt");
    if (this.#run === undefined && OPEN.has(this.#status)) throw unfinished();
    return this.#start(options, (conversation) => conversation.send(content));
  }

  /** Goes on with the run of a restored session, or with one that waits for approvals; `undefined` when there is none. */
  resume<const S extends Schema | undefined = undefined>(options: RunOptions<S> = {}): Run<T, OutputOf<S>> | undefined {
    if (this.#run !== undefined || !OPEN.has(this.#status)) return undefined;
    return this.#start(options, (conversation) => {
      const run = conversation.resume();
      if (run === undefined) throw invalidInput("there is no run to resume");
      for (const decide of this.#decisions.splice(0)) {
        try {
          decide(run);
        } catch {
          // The call waits no more, as that of a tool which the agent lacks now, or it is asked about anew.
        }
      }
      return run;
    });
  }

  /**
   * Decides about a call that waits for an approval. When no run is at work, `resume()` goes on with the decision. It holds for
   * the input that `pending` shows and no other.
   *
   * @throws CrabletError `invalid-input` when the call does not wait: it was decided about already, say, or the run is over.
   */
  approve(callId: string, allow = true, reason?: string): void {
    const call = named(this.#pending, callId);
    this.#decide(call, (run) => run.approve(callId, allow, reason, call?.inputHash));
    this.#pending = without(this.#pending, callId);
    this.#changed();
  }

  /**
   * Gives the result of a call of a client-side tool, one without `execute`; `toolOutput` for files and failures. When no run is
   * at work, `resume()` goes on with it.
   *
   * @throws CrabletError `invalid-input` when the call does not wait, or the result cannot be written as JSON.
   */
  toolResult(callId: string, output: unknown): void {
    const text = toJson(outputOf(output), "the result");
    this.#decide(named(this.#clientCalls, callId), (run) => run.toolResult(callId, text));
    this.#clientCalls = without(this.#clientCalls, callId);
    this.#changed();
  }

  /** The messages that wait: steered ones for the next step, follow-ups for the end of the run. */
  queued(): QueuedMessages {
    const live = liveOf(this.#held)?.conversation.queued();
    if (live !== undefined) return JSON.parse(live) as QueuedMessages;
    const text = this.#saved.text;
    return text === undefined ? { steers: [], followUps: [] } : contentsOf(text).queued;
  }

  /**
   * Puts another message in the place of one that waits.
   *
   * @throws CrabletError `invalid-input` when no such message waits: it may have been delivered.
   */
  editQueued(id: string, input: Input): void {
    const content = toJson(contentOf(input), "the message");
    this.#inConversation((conversation) => conversation.editQueued(id, content));
  }

  /**
   * Takes a message out of its queue, so that it is not delivered.
   *
   * @throws CrabletError `invalid-input` when no such message waits: it may have been delivered.
   */
  unqueue(id: string): void {
    this.#inConversation((conversation) => conversation.unqueue(id));
  }

  /** Stops the active run, if there is one. */
  abort(reason?: unknown): void {
    this.#run?.abort(reason);
  }

  /**
   * Calls a function whenever `getState()` has changed. What it throws goes to `console.error` and nowhere else. Returns what ends
   * it.
   */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    this.#run?.drainIfUnread();
    return () => this.#listeners.delete(listener);
  };

  /** The state: the same object until something changed. */
  readonly getState = (): SessionState => {
    this.#state ??= {
      status: this.#status,
      messages: this.#transcript.messages,
      streaming: this.#streaming.message,
      pending: this.#pending,
      clientCalls: this.#clientCalls,
      error: this.#error,
    };
    return this.#state;
  };

  /** The conversation, to be saved. May be called at any moment, also while a run is active. */
  toJSON(): SessionSnapshot {
    const snapshot = this.#text();
    return snapshot === undefined ? { version: 1 } : { version: 1, snapshot };
  }

  /**
   * When a run that is not finished has something to do although nobody does anything: the first of its deadlines, of a question to a
   * person (`approvalTimeoutMs`), of a wait before a model is asked again, of the run itself (`timeoutMs`). In milliseconds of
   * Unix time; `undefined` where nothing is due. For places that are stopped and can be started at a time, as by the alarm of a
   * Durable Object: call `resume()` then. While a run is at work it keeps its deadlines by itself.
   */
  dueAt(): number | undefined {
    const text = this.#text();
    return text === undefined ? undefined : contentsOf(text).dueAt;
  }

  /** Every message of the session in the order in which they came, also those that `seek()` left. */
  tree(): readonly TreeEntry[] {
    const text = this.#text();
    return text === undefined ? [] : treeOf(text);
  }

  /**
   * Goes to another place of the session's tree: the next prompt follows this message, or begins an empty history. What
   * followed it so far stays in the tree. In a store, it is saved when the promise resolves.
   *
   * @throws CrabletError `busy` while a run is not finished; `invalid-input` when there is no such message, or when it is an
   *   answer with tool calls, after which no conversation can go on.
   */
  async seek(messageId?: string): Promise<void> {
    const text = this.#settled();
    if (text === undefined && messageId === undefined) return;
    const lines = moveLines(text ?? "", messageId);
    const saving = this.#add(lines);
    this.#transcript = this.#restored();
    this.#changed();
    await saving;
  }

  /**
   * Names a place of the session's tree, to find it again in `tree()`; without a label the name is taken away. In a store, it is
   * saved when the promise resolves.
   *
   * @throws CrabletError `busy` while a run is not finished; `invalid-input` when there is no such message.
   */
  async label(messageId: string, label?: string): Promise<void> {
    await this.#add(labelLines(this.#settled() ?? "", messageId, label));
  }

  /**
   * A conversation that begins with the history of this one up to a message, the last one by default, and goes its own way: for
   * `agent.session()`, or `agent.open()` under another id.
   *
   * @throws CrabletError `invalid-input` when there is no such message, or when it is an answer with tool calls.
   */
  fork(messageId?: string): SessionSnapshot {
    const text = this.#text();
    const last = messageId ?? (text === undefined ? undefined : contentsOf(text).messages.at(-1)?.id);
    if (last === undefined) return { version: 1 };
    return { version: 1, snapshot: forkText(text ?? "", last) };
  }

  /** The conversation as it is now. */
  #text(): string | undefined {
    return liveOf(this.#held)?.conversation.snapshot() ?? this.#saved.text;
  }

  /** The text of a conversation that nothing works on. */
  #settled(): string | undefined {
    if (this.#run !== undefined || OPEN.has(this.#status)) throw unfinished();
    this.#release();
    return this.#saved.text;
  }

  /** Adds lines to what is saved. */
  async #add(lines: string): Promise<void> {
    const whole = this.#saved.add(lines);
    await this.#place?.write(lines, whole);
  }

  /**
   * Adds lines to what is saved that a store is given with the next ones. It has the end of the last run, and somebody may have
   * opened the conversation since: who writes without being asked to would keep them out.
   */
  #keep(lines: string): void {
    this.#saved.add(lines);
    this.#place?.keep(lines);
  }

  /** Takes up what is saved. */
  #restored(): Transcript {
    const text = this.#saved.text;
    const restored = text === undefined ? undefined : contentsOf(text);
    this.#status = restored?.isOpen === true ? "interrupted" : "idle";
    this.#pending = restored?.pending ?? [];
    this.#clientCalls = (restored?.started ?? [])
      .filter(({ path }) => this.#parts.isClientSide(path))
      .map(({ call }) => call);
    return new Transcript(restored?.messages);
  }

  #start<Output>(
    options: RunOptions,
    begin: (conversation: CoreConversation) => ReturnType<CoreConversation["send"]>,
  ): Run<T, Output> {
    if (this.#run !== undefined) {
      throw new CrabletError({
        kind: "busy",
        message: "a run of this session is active: wait for it, abort it, or use run.steer()",
      });
    }
    checkOptions(options, "a run", ["output", "signal", "model", "maxSteps"]);
    const output = options.output === undefined ? undefined : new RunOutput(options.output);
    const before = this.#status;
    const run = new Run<T, Output>(
      {
        output,
        open: async () => {
          const { conversation, life } = await this.#hold(options, output);
          const core = begin(conversation);
          this.#begun = core;
          this.#checkpoint();
          return { core, life };
        },
        onEvent: this.#parts.onEvent,
        observe: (events) => this.#observe(events),
        over: (error) => this.#over(error, before),
        isWatched: () => this.#listeners.size > 0,
      },
      { signal: options.signal, approve: this.#parts.approve },
    );
    this.#run = run;
    this.#status = "running";
    this.#error = undefined;
    if (this.#listeners.size > 0) run.drainIfUnread();
    this.#changed();
    return run;
  }

  /** The conversation in the module, for the agent that the options ask for. */
  async #hold(options: RunOptions, output: RunOutput | undefined): Promise<Held> {
    const { agent, isOwn, life } = await this.#parts.core(options, output);
    if (this.#held !== undefined && this.#held.agent === agent) {
      idle.delete(this.#held);
      return this.#held;
    }
    this.#release();
    const journal = this.#place === undefined ? undefined : (lines: string) => this.#add(lines);
    const conversation = agent.conversation(this.#saved.text, journal);
    const held: Held = { agent, conversation, isOwn, life, release: () => this.#release() };
    this.#held = held;
    registry.register(this, held, held);
    return held;
  }

  /** Keeps the conversation outside the module, where a trap in it does no harm. */
  #checkpoint(): void {
    const held = liveOf(this.#held);
    // With a store, every checkpoint comes by itself.
    if (!this.#isOnce && this.#place === undefined && held !== undefined) this.#saved.add(held.conversation.changes());
  }

  #observe(events: readonly AgentEvent[]): void {
    if (this.#isOnce) return;
    if (events.some((event) => CHECKPOINTS.has(innermost(event).type))) this.#checkpoint();
    for (const event of events) {
      this.#transcript.apply(event);
      this.#streaming.apply(event);
      this.#observeCall(innermost(event));
      switch (event.type) {
        case "step-start":
          this.#callNames.clear();
          break;
        case "run-suspended":
          this.#status = this.#pending.length > 0 ? "awaiting-approval" : "awaiting-result";
          break;
        case "run-end":
          this.#status = event.error === undefined || event.stopReason === "aborted" ? "idle" : "error";
          this.#error = this.#status === "error" ? event.error : undefined;
          this.#pending = [];
          this.#clientCalls = [];
          break;
        default:
      }
    }
    // The end is told once the next prompt is welcome.
    if (events.at(-1)?.type !== "run-end") this.#changed();
  }

  /** Follows which calls wait for somebody outside, those of sub-agents too. */
  #observeCall(event: AgentEvent): void {
    const isSuspended = this.#status === "awaiting-approval" || this.#status === "awaiting-result";
    switch (event.type) {
      case "tool-call":
        this.#callNames.set(event.callId, event.toolName);
        break;
      case "approval-request": {
        const { type: _type, runId: _run, step: _step, ...call } = event;
        this.#callNames.set(event.callId, event.toolName);
        this.#pending = [...without(this.#pending, call.callId), call];
        break;
      }
      case "approval-response":
        this.#pending = without(this.#pending, event.callId);
        if (isSuspended) this.#status = "running";
        break;
      case "tool-start":
        if (event.clientSide === true) {
          const { callId, input } = event;
          const toolName = this.#callNames.get(callId) ?? this.#toolNameOf(callId);
          this.#clientCalls = [...without(this.#clientCalls, callId), { callId, toolName, input }];
        }
        break;
      case "tool-result":
        this.#clientCalls = without(this.#clientCalls, event.callId);
        if (isSuspended) this.#status = "running";
        break;
      default:
    }
  }

  /** The tool of a call that was made before the session was restored. */
  #toolNameOf(callId: string): string {
    for (const { content } of this.#transcript.messages) {
      for (const part of content) if (part.type === "tool-call" && part.callId === callId) return part.toolName;
    }
    return "";
  }

  #decide(call: ToolCall | undefined, decision: (run: CoreRun) => void): void {
    const run = this.#begun;
    if (run === undefined) {
      if (call === undefined) throw invalidInput("no such call waits: it was answered, or never asked");
      this.#decisions.push(decision);
      return;
    }
    crossing(() => decision(run));
  }

  #inConversation(call: (conversation: CoreConversation) => void): void {
    const held = liveOf(this.#held);
    if (held === undefined) throw invalidInput("no such message waits: no run of this session has been at work lately");
    crossing(() => call(held.conversation));
  }

  #over(thrown: unknown, before: SessionStatus): void {
    this.#run = undefined;
    this.#begun = undefined;
    if (this.#status === "running") {
      // No event told of an end: the run did not begin.
      const failure = failureOf(thrown);
      const isOpen = OPEN.has(before);
      this.#status = isOpen ? before : failure === undefined ? "idle" : "error";
      this.#error = failure;
    }
    if (this.#held !== undefined) {
      if (this.#held.life.error !== undefined) this.#revert();
      else if (this.#isOnce || this.#held.isOwn) this.#release();
      else rest(this.#held);
    }
    this.#changed();
  }

  /** Goes back to the last checkpoint, after a trap. */
  #revert(): void {
    this.#release();
    if (this.#saved.text === undefined) return;
    this.#transcript = this.#restored();
    this.#streaming = new StreamingMessage();
    if (this.#status === "idle") this.#status = "error";
  }

  /** Saves the conversation as text and releases its memory in the module. */
  #release(): void {
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    idle.delete(held);
    registry.unregister(held);
    // A dead instance has nothing to release; the last saved text stands.
    if (liveOf(held) === undefined) return;
    if (!this.#isOnce) this.#keep(held.conversation.changes());
    free(held);
  }

  #changed(): void {
    this.#state = undefined;
    for (const listener of [...this.#listeners]) notify("a subscriber", listener);
  }
}

function unfinished(): CrabletError {
  return new CrabletError({
    kind: "busy",
    message: "a run of this session is not finished: wait for it, abort it or resume() it first",
  });
}

/** A conversation that is held in the module. */
interface Held {
  readonly agent: CoreAgent;
  readonly conversation: CoreConversation;
  readonly isOwn: boolean;
  readonly life: Life;
  readonly release: () => void;
}

/** A run is to be gone on with. */
const OPEN: ReadonlySet<SessionStatus> = new Set<SessionStatus>([
  "interrupted",
  "awaiting-approval",
  "awaiting-result",
]);

/** After these, going on from an older checkpoint would do something a second time. */
const CHECKPOINTS: ReadonlySet<string> = new Set<AgentEvent["type"]>(["tool-start", "tool-result", "step-end"]);

function named<Call extends ToolCall>(calls: readonly Call[], callId: string): Call | undefined {
  return calls.find((call) => call.callId === callId);
}

function without<Call extends ToolCall>(calls: readonly Call[], callId: string): readonly Call[] {
  return calls.filter((call) => call.callId !== callId);
}

/** Conversations that nothing works on, the longest idle first. */
const idle = /* @__PURE__ */ new Set<Held>();

/** Idle conversations that keep their place in the module. More are saved as text, which a later prompt reads again. */
const MAX_IDLE = 16;

function rest(held: Held): void {
  idle.add(held);
  for (const oldest of idle) {
    if (idle.size <= MAX_IDLE) break;
    oldest.release();
  }
}

function liveOf(held: Held | undefined): Held | undefined {
  return held?.life.error === undefined ? held : undefined;
}

function free({ agent, conversation, isOwn }: Held): void {
  conversation.free();
  if (isOwn) agent.free();
}

const registry = /* @__PURE__ */ new FinalizationRegistry<Held>((held) => {
  idle.delete(held);
  free(held);
});

function failureOf(thrown: unknown): ErrorInfo | undefined {
  if (thrown === undefined) return undefined;
  const { kind, retryable } = CrabletError.is(thrown) ? thrown : { kind: "internal", retryable: false };
  return { kind, message: messageOf(thrown), retryable };
}

function textOf(saved: SessionSnapshot | undefined): string | undefined {
  if (saved === undefined || saved === null) return undefined;
  const { version, snapshot } = saved;
  if (version === undefined || (version === 1 && snapshot !== undefined && typeof snapshot !== "string"))
    throw invalidInput("this is not a saved crablet session: give what session.toJSON() gave, unchanged");
  if (version !== 1)
    throw invalidInput(`this session was saved by a newer crablet (version ${String(version)}): update crablet`);
  return snapshot;
}
