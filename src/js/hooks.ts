import { fromCore, invalidInput } from "./error.js";
import type { ToolCall } from "./event.js";
import { toJson } from "./json.js";
import { contentOf, type FilePart, type Input, type Message, type TextPart, type Usage } from "./message.js";
import type { Model, ModelFunction, ModelOptions } from "./model.js";
import type { Step } from "./run.js";
import type { MaybePromise, ToolOutput, ToolSet } from "./tool.js";

/** The functions that a run asks on its way. All may be asynchronous; one that is not given costs nothing. */
export interface Hooks<T extends ToolSet = ToolSet> {
  /**
   * Chooses the model, the tools and the instructions of each step, before it begins. What it throws ends the run.
   */
  readonly prepareStep?: (context: StepContext) => MaybePromise<StepChange<T> | undefined | void>;
  /**
   * Changes what messages a step sends: a list of edits, made one after the other. The conversation itself stays as it is.
   * What it throws ends the run.
   */
  readonly prepareContext?: (context: StepContext) => MaybePromise<readonly ContextEdit[] | undefined | void>;
  /**
   * Changes the body of each model call over HTTP, as the provider's protocol has it. To ask costs that the body, which holds
   * the whole conversation, is printed and parsed once more at each step. What it throws ends the run.
   */
  readonly formatRequest?: (
    body: any,
    context: { readonly model: { readonly provider: string; readonly id: string } },
  ) => MaybePromise<unknown>;
  /** Asked before each tool call, after its input was validated. What it throws, and taking too long, denies the call. */
  readonly beforeToolCall?: (call: ToolCall<T>) => MaybePromise<BeforeToolCall | undefined | void>;
  /** Asked after each tool call. What it throws makes the result an error. */
  readonly afterToolCall?: (
    call: Omit<ToolCall<T>, "callId">,
    result: CallOutcome,
  ) => MaybePromise<ToolOutput | undefined | void>;
  /**
   * Whether the run shall end here: asked after each step with tool calls. It ends with the stop reason `terminated`. What it
   * throws ends the run too, as an error.
   */
  readonly stopWhen?: (steps: readonly Step[]) => MaybePromise<boolean>;
}

/** An answer of `beforeToolCall`; `undefined` allows. */
export type BeforeToolCall =
  | { readonly action: "allow" }
  /** Run with another input, which is validated again. */
  | { readonly action: "change"; readonly input: unknown }
  /** Do not run; the model is told why. */
  | { readonly action: "deny"; readonly reason: string }
  /** Ask a person. */
  | { readonly action: "ask" };

/** What a tool call gave. */
export interface CallOutcome {
  readonly content: readonly (TextPart | FilePart)[];
  readonly output?: unknown;
  readonly details?: unknown;
  readonly isError: boolean;
}

/** What `prepareStep` and `prepareContext` are told. */
export interface StepContext {
  /** The step, from 0. */
  readonly step: number;
  /** The messages that would be sent. Never changes, and costs nothing to read: what is new of it was told, not all of it. */
  readonly messages: readonly Message[];
  /**
   * Calls a model, such as one that writes a summary: one attempt, which ends with the run, and whose tokens count in its
   * budgets. Rejects with what failed.
   */
  callModel(request: ModelCall): Promise<ModelAnswer>;
}

/** A model call of a hook. */
export interface ModelCall {
  /** What to answer: a prompt, or messages. */
  readonly prompt: Input | readonly Message[];
  readonly instructions?: string;
  /** Default: the model of the step. */
  readonly model?: Model | ModelFunction;
  readonly maxTokens?: number;
}

/** What a model answered to a hook. */
export interface ModelAnswer {
  readonly text: string;
  readonly stopReason: string;
  readonly usage: Usage;
}

/** What shall be different for one step; what is absent is as the agent says. */
export interface StepChange<T extends ToolSet = ToolSet> {
  readonly model?: Model | ModelFunction;
  readonly instructions?: string;
  /** The names of the tools that the model is told of and may call. */
  readonly activeTools?: readonly ((keyof T & string) | (string & {}))[];
  readonly toolChoice?: ModelOptions["toolChoice"];
}

/** A change of the messages that a step sends. Messages that no edit touches are not encoded again. */
export type ContextEdit =
  /** Send only these of the messages so far. */
  | { readonly keep: readonly string[] }
  /** Do not send this message. */
  | { readonly drop: string }
  /** Send another message in its place. */
  | { readonly replace: string; readonly with: Message }
  /** Send this message too: before the one with this id, or after all. */
  | { readonly insert: Message; readonly before?: string };

/** @internal How the module calls a model for a hook. */
export type CallModel = (request: string, resolve: (answer: string) => void, reject: (thrown: unknown) => void) => void;

/** @internal What the module asks. */
export type Question =
  | ({ readonly type: "before-tool-call" } & ToolCall)
  | {
      readonly type: "after-tool-call";
      readonly toolName: string;
      readonly input: unknown;
      readonly result: CallOutcome;
    }
  | {
      readonly type: "prepare-step" | "prepare-context";
      readonly runId: string;
      readonly step: number;
      /** How many of the messages told last stay. */
      readonly keep: number;
      /** The messages after them. */
      readonly add: readonly Message[];
    }
  | { readonly type: "stop-when"; readonly messages: readonly Message[] }
  | {
      readonly type: "format-request";
      readonly model: { readonly provider: string; readonly id: string };
      readonly body: unknown;
    };

/** @internal What a hook needs of its agent. */
export interface HookParts {
  readonly hooks: Hooks;
  /** Whether the tool asks for an approval of this input. */
  needsApproval(toolName: string, input: unknown): MaybePromise<boolean>;
  /** A model in the form of the module. */
  modelConfig(model: Model | ModelFunction): Record<string, unknown>;
}

/** Without an action there is nothing to change. */
type Reply = Record<string, unknown>;

/** @internal Answers the questions of the module, and keeps the messages that it tells. */
export class HookAnswers {
  readonly #parts: HookParts;
  /** The messages of the runs that were asked about last. */
  readonly #mirrors = new Map<string, readonly Message[]>();

  constructor(parts: HookParts) {
    this.#parts = parts;
  }

  async answer(question: Question, callModel: CallModel): Promise<Reply> {
    const { hooks } = this.#parts;
    switch (question.type) {
      case "before-tool-call":
        return this.#before(question);
      case "after-tool-call": {
        const { toolName, input, result } = question;
        const changed = await hooks.afterToolCall?.({ toolName, input }, result);
        if (!changed) return {};
        const { content, ...rest } = changed;
        return {
          action: "change-result",
          output: { ...rest, content: typeof content === "string" ? [{ type: "text", text: content }] : content },
        };
      }
      case "stop-when":
        return (await hooks.stopWhen?.(stepsOf(question.messages))) === true ? { action: "stop" } : {};
      case "format-request": {
        const { provider, id } = question.model;
        const body = await hooks.formatRequest?.(question.body, { model: { provider, id } });
        return body === undefined ? {} : { action: "change-body", body };
      }
      case "prepare-step":
      case "prepare-context":
        return this.#prepare(question, callModel);
    }
  }

  async #before({ callId, toolName, input, server }: ToolCall): Promise<Reply> {
    const call: ToolCall = { callId, toolName, input, ...(server !== undefined && { server }) };
    const reply = (await this.#parts.hooks.beforeToolCall?.(call)) ?? { action: "allow" };
    const { action } = reply;
    if (action !== "allow" && action !== "change") {
      // Whatever else a guard answers must not let the call through: the module refuses what it does not know.
      return { ...reply, action: action === "deny" || action === "ask" ? action : "none" };
    }
    const given = action === "change" ? reply.input : input;
    const asks = await this.#parts.needsApproval(toolName, given);
    if (action === "change") return { action: asks ? "change-and-ask" : "change-input", input: given };
    return asks ? { action: "ask" } : {};
  }

  async #prepare(
    question: Extract<Question, { readonly type: "prepare-step" | "prepare-context" }>,
    callModel: CallModel,
  ): Promise<Reply> {
    const { hooks } = this.#parts;
    const { type, runId, step, keep, add } = question;
    const known = this.#mirrors.get(runId) ?? [];
    if (known.length < keep) return { action: "retell" };
    const isSame = known.length === keep && add.length === 0;
    const messages = isSame ? known : Object.freeze([...known.slice(0, keep), ...add]);
    this.#mirrors.delete(runId);
    this.#mirrors.set(runId, messages);
    for (const oldest of this.#mirrors.keys()) {
      if (this.#mirrors.size <= MAX_MIRRORS) break;
      this.#mirrors.delete(oldest);
    }
    const context: StepContext = { step, messages, callModel: (call) => this.#callModel(call, callModel) };
    if (type === "prepare-context") {
      const edits = await hooks.prepareContext?.(context);
      if (!edits) return {};
      return { action: "edit-context", edits: edits.map(withIds) };
    }
    const change = await hooks.prepareStep?.(context);
    if (!change) return {};
    const { model, ...rest } = change;
    return {
      action: "change-step",
      ...rest,
      ...(model !== undefined && { model: this.#parts.modelConfig(model) }),
    };
  }

  async #callModel({ prompt, model, ...rest }: ModelCall, callModel: CallModel): Promise<ModelAnswer> {
    const messages: readonly Message[] = isMessages(prompt) ? prompt : [{ role: "user", content: contentOf(prompt) }];
    const request = {
      ...rest,
      ...(model !== undefined && { model: this.#parts.modelConfig(model) }),
      messages: messages.map((message) => ({ id: "", ...message })),
    };
    const text = toJson(request, "the request of callModel");
    const answer = await new Promise<string>((resolve, reject) => {
      callModel(text, resolve, (thrown) => reject(fromCore(thrown)));
    });
    return JSON.parse(answer) as ModelAnswer;
  }
}

/** As many as the module remembers too. */
const MAX_MIRRORS = 4;

function isMessages(prompt: ModelCall["prompt"]): prompt is readonly Message[] {
  return Array.isArray(prompt) && prompt.some((part) => "role" in part);
}

/** The steps of a run, of its messages. */
function stepsOf(messages: readonly Message[]): readonly Step[] {
  const answers = messages.filter((message) => message.role === "assistant");
  return answers.map((message, index) => ({ index, message, usage: message.usage ?? {} }));
}

/** The module reads whole messages, so one that is not of the conversation gets an id, which is not used. */
function withIds(edit: ContextEdit): Record<string, unknown> {
  if ("replace" in edit) return { ...edit, with: { id: "", ...edit.with } };
  if ("insert" in edit) return { ...edit, insert: { id: "", ...edit.insert } };
  if ("keep" in edit || "drop" in edit) return { ...edit };
  throw invalidInput("an edit of prepareContext has keep, drop, replace or insert");
}
