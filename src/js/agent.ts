import { answerOf } from "./function-model.js";
import type { Core, CoreAgent, CoreFunctions } from "./core.js";
import { CrabletError, invalidInput } from "./error.js";
import type { ToolCall } from "./event.js";
import { toJson } from "./json.js";
import type { Life } from "./life.js";
import { load } from "./load.js";
import type { McpServer } from "./mcp.js";
import { McpClient } from "./mcp-client.js";
import { closeConnection, type Connection, connectServer, settled, toolsOf } from "./mcp-connection.js";
import type { McpTool } from "./mcp-protocol.js";
import type { FilePart, Input, TextPart } from "./message.js";
import type { Model, ModelFunction, ModelOptions } from "./model.js";
import type { OutputOf, RunOutput } from "./output.js";
import type { Approve, Run, RunResult } from "./run.js";
import { type Schema, validate } from "./schema.js";
import { Session, type SessionSnapshot } from "./session.js";
import { type MaybePromise, outputOf, type Tool, type ToolOutput, type ToolSet } from "./tool.js";

/** What an agent is made of. */
export interface AgentOptions<T extends ToolSet = ToolSet> {
  /** The model that answers. */
  readonly model: Model | ModelFunction;
  /**
   * Models that answer, in this order, when the one before has failed for good: overloaded or unreachable after all attempts,
   * over a rate limit for too long, without credit. A run stays with the model that answers; `step-retry` and the messages
   * say which it is.
   */
  readonly fallbackModels?: readonly (Model | ModelFunction)[];
  /** The system prompt. */
  readonly instructions?: string;
  /** The agent's own tools, by name. */
  readonly tools?: T;
  /** MCP servers whose tools the agent has too. They are connected before the first run. */
  readonly mcpServers?: Readonly<Record<string, McpServer>>;
  /** Settings of every model request. */
  readonly modelOptions?: ModelOptions;
  /** The most model calls of one run. Default 20. */
  readonly maxSteps?: number;
  /** The most tokens of one run, read and written together; looked at between steps. Default: no limit. */
  readonly maxTokens?: number;
  /**
   * The most that one run may cost, in US dollars; looked at between steps. The model needs `prices` then. Default: no limit.
   */
  readonly maxCost?: number;
  /**
   * How a history that has become too long is sent in a shorter form; what is kept stays whole. Default: when the provider
   * says that the input is too long. With `thresholdTokens`, before each call that would read more. `false`: never.
   */
  readonly compaction?: { readonly thresholdTokens?: number; readonly keepTokens?: number } | false;
  /** The most milliseconds of one run. Default: no limit. */
  readonly timeoutMs?: number;
  /** How failed model calls are tried again. Default: 4 attempts in all, 1000 ms before the second, doubled for each further. */
  readonly retry?: { readonly maxAttempts?: number; readonly baseDelayMs?: number } | false;
  /** Decides about tools that need an approval. Without it, the run waits until `approve` of the run or session is called. */
  readonly approve?: Approve<T>;
  /** Asked before each tool call, after its input was validated. What it throws denies the call. */
  readonly beforeToolCall?: (call: ToolCall<T>) => MaybePromise<BeforeToolCall | undefined | void>;
  /** Asked after each tool call. What it throws makes the result an error. */
  readonly afterToolCall?: (
    call: Omit<ToolCall<T>, "callId">,
    result: CallOutcome,
  ) => MaybePromise<ToolOutput | undefined | void>;
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

/** Options of one run. */
export interface RunOptions<S extends Schema | undefined = Schema | undefined> {
  /**
   * What the run shall end with: a JSON Schema, or a Standard Schema such as zod, valibot or arktype make. The answer is
   * checked, asked for once more when it does not fit, and is the `output` of the result. A run that cannot give it fails.
   * A run that is resumed must be given the same again.
   */
  readonly output?: S;
  /** Aborts the run. */
  readonly signal?: AbortSignal;
  /** Another model for this run. */
  readonly model?: Model | ModelFunction;
  /** Another limit for this run. */
  readonly maxSteps?: number;
}

/** An MCP server of an agent. */
export interface ConnectedServer {
  readonly name: string;
  readonly tools: readonly McpTool[];
  /** The agent's own connection, for the server's resources, prompts and all else. It ends with the agent. */
  readonly client: McpClient;
}

/**
 * A model with instructions and tools. Holds no conversation: any number of runs and sessions can be at work at once.
 *
 * Making one does nothing yet; the module is loaded and MCP servers are connected when the first run needs them.
 */
export class Agent<const T extends ToolSet = {}> implements AsyncDisposable {
  readonly #options: AgentOptions<T>;
  readonly #servers = new Map<string, Promise<Connection>>();
  #module: Core | undefined;
  #core: Promise<CoreAgent> | undefined;
  #isClosed = false;

  constructor(options: AgentOptions<T>) {
    if (typeof options?.model !== "function" && options?.model?.settings === undefined) {
      throw invalidInput(
        'an agent needs a model, such as anthropic("claude-…", { apiKey }) or openaiCompatible("…", { baseUrl })',
      );
    }
    this.#options = options;
  }

  /**
   * Answers one prompt.
   *
   * @throws CrabletError what ended the run; `signal.reason` when it was aborted.
   */
  run<const S extends Schema | undefined = undefined>(
    input: Input,
    options: RunOptions<S> = {},
  ): Promise<RunResult<OutputOf<S>>> {
    return this.stream(input, options).result;
  }

  /** Answers one prompt, told event by event. Leaving the loop aborts the run. */
  stream<const S extends Schema | undefined = undefined>(
    input: Input,
    options: RunOptions<S> = {},
  ): Run<T, OutputOf<S>> {
    return new Session<T>(this.#parts(), undefined, { isOnce: true }).send(input, options);
  }

  /** A conversation: it keeps its history, a user interface can follow it, and it can be saved and restored. */
  session(saved?: SessionSnapshot): Session<T> {
    return new Session<T>(this.#parts(), saved);
  }

  /**
   * Connects the MCP servers ahead of the first run, and says what tools they have.
   *
   * @throws CrabletError when a server cannot be reached; the next call tries again.
   */
  async connect(options: { readonly signal?: AbortSignal } = {}): Promise<readonly ConnectedServer[]> {
    await this.#load();
    const servers = await this.#connected(options.signal);
    return Promise.all(
      servers.map(async ([name, server]) => ({
        name,
        tools: await toolsOf(server, options.signal),
        client: new McpClient(server, { isShared: true }),
      })),
    );
  }

  /** Closes the connections to MCP servers and releases memory. The agent cannot be used any more. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const core = this.#core;
    const servers = [...this.#servers.values()];
    this.#servers.clear();
    // What could not be opened needs no closing.
    await core?.then(
      (agent) => agent.free(),
      () => {},
    );
    await Promise.allSettled(servers.map(async (server) => closeConnection(await server)));
  }

  /** As `close()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #parts(): AgentParts {
    return {
      approve: this.#options.approve as Approve | undefined,
      core: async (options, output) => {
        if (this.#isClosed) throw invalidInput("this agent is closed");
        const isOwn = options.model !== undefined || options.maxSteps !== undefined || output !== undefined;
        const { life } = await this.#load();
        if (isOwn) return { agent: await this.#build(options, output), isOwn, life };
        // A failure is not kept: a server that was not reachable may be at the next try.
        this.#core ??= this.#build({}).catch((thrown: unknown) => {
          this.#core = undefined;
          throw thrown;
        });
        return { agent: await this.#core, isOwn, life };
      },
    };
  }

  /** The module. What was made in an instance that failed is forgotten. */
  async #load(): Promise<Core> {
    const core = await load();
    if (this.#module !== core) {
      this.#module = core;
      this.#core = undefined;
      this.#servers.clear();
    }
    return core;
  }

  async #build(overrides: RunOptions, output?: RunOutput): Promise<CoreAgent> {
    const options = { ...this.#options, ...definedOf(overrides) };
    const core = await this.#load();
    const servers = await this.#connected(overrides.signal);
    const config = { ...configOf(options), output: output?.config };
    const functions = functionsOf(options as AgentOptions, output);
    const agent = new core.AgentHandle(toJson(config, "the agent"), functions);
    try {
      for (const [, server] of servers) {
        await settled(core, overrides.signal, (...settle) => agent.addServer(server.server, ...settle));
      }
    } catch (thrown) {
      agent.free();
      throw thrown;
    }
    return agent;
  }

  #connected(signal: AbortSignal | undefined): Promise<[string, Connection][]> {
    const servers = Object.entries(this.#options.mcpServers ?? {});
    return Promise.all(
      servers.map(async ([name, server]): Promise<[string, Connection]> => {
        let connecting = this.#servers.get(name);
        if (connecting === undefined) {
          // Shared by all runs, so no run's signal ends it.
          connecting = connectServer(name, server);
          this.#servers.set(name, connecting);
        }
        try {
          return [name, await untilAborted(connecting, signal)];
        } catch (thrown) {
          if (signal?.aborted !== true) this.#servers.delete(name);
          throw CrabletError.is(thrown) ? named(name, thrown) : thrown;
        }
      }),
    );
  }
}

/** @internal What a session needs of its agent. */
export interface AgentParts {
  readonly approve: Approve | undefined;
  /** The agent in the module; one that `isOwn` is released by whoever asked for it. */
  core(
    options: RunOptions,
    output: RunOutput | undefined,
  ): Promise<{ readonly agent: CoreAgent; readonly isOwn: boolean; readonly life: Life }>;
}

/** A promise that a signal can leave behind. */
async function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  if (signal === undefined) return promise;
  signal.throwIfAborted();
  let abort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

function named(server: string, error: CrabletError): CrabletError {
  return new CrabletError(
    { ...error, kind: error.kind, message: `MCP server "${server}": ${error.message}` },
    { cause: error },
  );
}

function definedOf({ model, maxSteps }: RunOptions): RunOptions {
  return { ...(model !== undefined && { model }), ...(maxSteps !== undefined && { maxSteps }) };
}

function configOf(options: AgentOptions<ToolSet>): Record<string, unknown> {
  const { retry } = options;
  return {
    models: modelsOf(options).map(modelConfig),
    instructions: options.instructions,
    tools: Object.entries(options.tools ?? {}).map(([name, tool]) => toolConfig(name, tool)),
    options: options.modelOptions ?? {},
    policy: {
      maxSteps: options.maxSteps,
      maxTokens: options.maxTokens,
      maxCost: options.maxCost,
      compaction: options.compaction,
      timeoutMs: options.timeoutMs,
      ...(retry === false ? { maxAttempts: 1 } : { maxAttempts: retry?.maxAttempts, retryBaseMs: retry?.baseDelayMs }),
    },
    hooks: {
      beforeToolCall:
        options.beforeToolCall !== undefined ||
        Object.values(options.tools ?? {}).some((tool) => typeof tool.needsApproval === "function"),
      afterToolCall: options.afterToolCall !== undefined,
    },
  };
}

/** The models in the order of their numbers. */
function modelsOf({ model, fallbackModels = [] }: AgentOptions): readonly (Model | ModelFunction)[] {
  return [model, ...fallbackModels];
}

/** The one `fetch` of the models. */
function fetchOf(options: AgentOptions): typeof fetch | undefined {
  const models = modelsOf(options).filter((model) => typeof model !== "function");
  const [first, ...others] = new Set(models.map((model) => model.settings.options.fetch));
  if (others.length > 0) throw invalidInput("the models of an agent must have the same fetch");
  return first;
}

function modelConfig(model: Model | ModelFunction): Record<string, unknown> {
  if (typeof model === "function") return { wire: "function", provider: "function", id: model.name || "function" };
  const { wire, options, credentials } = model.settings;
  return {
    wire,
    provider: model.provider,
    id: model.id,
    baseUrl: options.baseUrl === undefined ? undefined : String(options.baseUrl).replace(/\/+$/, ""),
    headers: [...new Headers(options.headers)],
    accepts: options.accepts,
    key: typeof credentials === "string" ? credentials : undefined,
    prices: options.prices,
    asksForCredentials: typeof credentials === "function",
  };
}

function toolConfig(name: string, tool: Tool): Record<string, unknown> {
  if (tool.schema === undefined) throw invalidInput(`the tool "${name}" was not made by tool()`);
  return {
    name,
    description: tool.description,
    inputSchema: tool.schema.jsonSchema,
    hasValidator: tool.schema.standard !== undefined,
    needsApproval: tool.needsApproval === true,
    sequential: tool.sequential,
    repeatable: tool.repeatable,
    timeoutMs: tool.timeoutMs,
  };
}

function functionsOf(options: AgentOptions, output: RunOutput | undefined): CoreFunctions {
  const { tools = {} } = options;
  const models = modelsOf(options);
  const toolOf = (name: string): Tool => {
    const tool = tools[name];
    if (tool === undefined) throw invalidInput(`there is no tool "${name}"`);
    return tool;
  };
  return {
    fetch: fetchOf(options),

    async credentials(number) {
      const model = models[number];
      const credentials = typeof model === "object" ? model.settings.credentials : undefined;
      const given = typeof credentials === "function" ? await credentials() : credentials;
      return toJson(typeof given === "string" ? { key: given } : given, "the credentials of the model");
    },

    execute(name, callId, input, progress) {
      let controller: AbortController | undefined;
      let isCancelled = false;
      const context = {
        callId,
        // Made when it is asked for: most tools never look.
        get signal() {
          controller ??= new AbortController();
          if (isCancelled) controller.abort(cancelled());
          return controller.signal;
        },
        progress(data: unknown) {
          if (!isCancelled) progress(toJson(data, `the progress of ${name}`));
        },
      };
      const run = async (): Promise<string> => {
        const tool = toolOf(name);
        const parsed: unknown = JSON.parse(input);
        // The validator's output is for `execute` alone and is not kept, so it is made here.
        const given = tool.schema.standard === undefined ? parsed : await validate(tool.schema.standard, parsed);
        return toJson(outputOf(await tool.execute(given, context)), `what the tool "${name}" returned`);
      };
      return {
        result: run(),
        cancel() {
          isCancelled = true;
          controller?.abort(cancelled());
        },
      };
    },

    async validate(name, input) {
      const { standard } = toolOf(name).schema;
      // Only whether it is valid matters here: `execute` is given the validator's output.
      if (standard !== undefined) await validate(standard, JSON.parse(input));
      return undefined;
    },

    async ask(text) {
      const question = JSON.parse(text) as Question | OutputQuestion;
      if (question.type === "validate-output") {
        // Only whether it is valid matters here: the result has the validator's form of it.
        await output?.validate(output.unwrap(question.output));
        return "{}";
      }
      return toJson(await answer(options, question), "the answer of a hook");
    },

    model(number, request) {
      const model = models[number];
      if (typeof model !== "function") throw invalidInput("the model is not a function");
      return answerOf(model, request);
    },
  };
}

type OutputQuestion = { readonly type: "validate-output"; readonly output: unknown };

type Question =
  | ({ readonly type: "before-tool-call" } & ToolCall)
  | {
      readonly type: "after-tool-call";
      readonly toolName: string;
      readonly input: unknown;
      readonly result: CallOutcome;
    };

async function answer(options: AgentOptions, question: Question): Promise<Record<string, unknown>> {
  if (question.type === "after-tool-call") {
    const { toolName, input, result } = question;
    const changed = await options.afterToolCall?.({ toolName, input }, result);
    if (!changed) return { action: "continue" };
    const { content, ...rest } = changed;
    return {
      action: "change-result",
      output: { ...rest, content: typeof content === "string" ? [{ type: "text", text: content }] : content },
    };
  }
  const { type: _type, ...call } = question;
  const reply = await options.beforeToolCall?.(call);
  if (reply && reply.action !== "allow")
    return reply.action === "change" ? { action: "change-input", input: reply.input } : { ...reply };
  const needsApproval = options.tools?.[call.toolName]?.needsApproval;
  const asks = typeof needsApproval === "function" && (await needsApproval(call.input));
  return { action: asks ? "ask" : "continue" };
}

function cancelled(): DOMException {
  return new DOMException("The tool call was cancelled", "AbortError");
}
