/// <reference lib="esnext.disposable" preserve="true" />
import { AgentLoop } from "./agent-loop.js";
import { configOf, Models, withNumbers } from "./config.js";
import type { Core, CoreAgent, CoreFunctions } from "./core.js";
import { CrabletError, invalidInput } from "./error.js";
import type { AgentEvent } from "./event.js";
import { functionsOf } from "./functions.js";
import { toJson } from "./json.js";
import type { Life } from "./life.js";
import { load } from "./load.js";
import { McpClient } from "./mcp-client.js";
import {
  type AgentTool,
  agentToolsOf,
  closeConnection,
  type Connection,
  connectServer,
  settled,
} from "./mcp-connection.js";
import type { Input } from "./message.js";
import type { AgentOptions, RunOptions } from "./options.js";
import type { OutputOf, RunOutput } from "./output.js";
import type { Approve, Run, RunResult } from "./run.js";
import { Place } from "./place.js";
import type { Schema } from "./schema.js";
import { Session, type SessionSnapshot } from "./session.js";
import { type SessionStore, storageError } from "./store.js";
import type { ToolSet } from "./tool.js";

/** An MCP server of an agent. */
export interface ConnectedServer {
  readonly name: string;
  /** Those that the model is told of, and those that are for user interfaces only. */
  readonly tools: readonly AgentTool[];
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
  #servers = new Map<string, Promise<Connection>>();
  #sharesServers = false;
  #module: Core | undefined;
  #core: Promise<BuiltAgent> | undefined;
  #isClosed = false;

  /**
   * Looks at the options, and does nothing else: the module is loaded and servers are connected at the first run.
   *
   * @throws CrabletError `invalid-input` without a model.
   */
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
  async run<const S extends Schema | undefined = undefined>(
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
    return new Session<T>(this.parts(), undefined, { isOnce: true }).send(input, options);
  }

  /** A conversation: it keeps its history, a user interface can follow it, and it can be saved and restored. */
  session(saved?: SessionSnapshot): Session<T> {
    return new Session<T>(this.parts(), saved);
  }

  /**
   * A conversation in the long-lived form: `send` never waits, `next` takes the answers in order, `stop` ends it. Messages that
   * are sent while one is worked on wait for their turn.
   */
  loop(saved?: SessionSnapshot): AgentLoop<T> {
    return new AgentLoop<T>(this.session(saved));
  }

  /**
   * Takes up the conversation that a store keeps under an id, or begins it there. From now on it is saved before anything
   * happens that a restore must know of: a tool that is not `repeatable` runs only once the checkpoint that records its start
   * is saved, and a save that fails ends the run. What was open when it was saved goes on with `resume()`.
   *
   * @param options `saved` is where a conversation begins that the store does not have yet, such as a fork.
   * @throws CrabletError `storage` when the store cannot be read; `invalid-input` when what it keeps is no conversation.
   */
  async open(id: string, store: SessionStore, options: { readonly saved?: SessionSnapshot } = {}): Promise<Session<T>> {
    const stored = await store.read(id).catch((thrown: unknown) => {
      throw storageError(thrown, `the session ${JSON.stringify(id)} could not be read`);
    });
    const place = new Place(store, id, stored?.version ?? 0);
    const saved =
      stored === undefined ? options.saved : { version: 1 as const, snapshot: `${stored.entries.join("\n")}\n` };
    return new Session<T>(this.parts(), saved, { place });
  }

  /**
   * Connects the MCP servers ahead of the first run, and says what tools they have.
   *
   * @throws CrabletError when a server cannot be reached; the next call tries again.
   */
  async connect(options: { readonly signal?: AbortSignal } = {}): Promise<readonly ConnectedServer[]> {
    this.#forgetDead();
    await this.#load();
    const servers = await this.#connected(options.signal);
    return Promise.all(
      servers.map(async ([name, server]) => ({
        name,
        tools: await agentToolsOf(server, options.signal),
        client: new McpClient(server, { isShared: true }),
      })),
    );
  }

  /** Closes the connections to MCP servers and releases memory. The agent cannot be used any more. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const core = this.#core;
    const servers = this.#sharesServers ? [] : [...this.#servers.values()];
    if (!this.#sharesServers) this.#servers.clear();
    // What could not be opened needs no closing.
    await core?.then(
      ({ agent }) => agent.free(),
      () => {},
    );
    await Promise.allSettled(servers.map(async (server) => closeConnection(await server)));
  }

  /** As `close()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal An agent that is made of something else, and shares the connections of this one. */
  derive(change: (options: AgentOptions<any>) => AgentOptions<any>): Agent<any> {
    const agent = new Agent<any>(change(this.#options));
    agent.#servers = this.#servers;
    agent.#sharesServers = true;
    return agent;
  }

  /** @internal */
  parts(): AgentParts {
    return {
      approve: this.#options.approve as Approve | undefined,
      onEvent: this.#options.onEvent as AgentParts["onEvent"],
      isClientSide: ([name = "", ...within]) => {
        const tool = this.#options.tools?.[name];
        if (tool === undefined || "agent" in tool) return tool?.agent.parts().isClientSide(within) ?? false;
        return tool.execute === undefined;
      },
      core: async (options, output) => {
        if (this.#isClosed) throw invalidInput("this agent is closed");
        this.#forgetDead();
        const isOwn = options.model !== undefined || options.maxSteps !== undefined || output !== undefined;
        if (isOwn) return { ...(await this.#build(options, output)), isOwn };
        // A failure is not kept: a server that was not reachable may be at the next try.
        this.#core ??= this.#build({}).catch((thrown: unknown) => {
          this.#core = undefined;
          throw thrown;
        });
        return { ...(await this.#core), isOwn };
      },
    };
  }

  /** What was made in an instance that failed is of no use any more. */
  #forgetDead(): void {
    if (this.#module?.life.error === undefined) return;
    this.#module = undefined;
    this.#core = undefined;
    this.#servers.clear();
  }

  async #load(): Promise<Core> {
    this.#module = await load();
    return this.#module;
  }

  async #build(overrides: RunOptions, output?: RunOutput): Promise<BuiltAgent> {
    const options = { ...this.#options, ...definedOf(overrides) };
    // The definition is written while the module is compiled.
    const [core, { config, functions }] = await Promise.all([this.#load(), definitionOf(options, output)]);
    const servers = await this.#connected(overrides.signal);
    const agent = new core.AgentHandle(config, functions);
    try {
      for (const [name, tool] of Object.entries(options.tools ?? {})) {
        if ("agent" in tool) agent.addAgent(name, (await tool.agent.parts().core({}, undefined)).agent);
      }
      for (const [, server] of servers) {
        await settled(core, overrides.signal, (...settle) => agent.addServer(server.server, ...settle));
      }
    } catch (thrown) {
      agent.free();
      throw thrown;
    }
    return { agent, life: core.life };
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
  readonly onEvent: ((event: AgentEvent) => unknown) | undefined;
  /** Whether the caller's client performs a tool. Of a tool of a sub-agent, the tools that lead to it come before it. */
  isClientSide(path: readonly string[]): boolean;
  /** The agent in the module; one that `isOwn` is released by whoever asked for it. */
  core(options: RunOptions, output: RunOutput | undefined): Promise<BuiltAgent & { readonly isOwn: boolean }>;
}

/** An agent in the module, and the life of the instance that it is in. */
interface BuiltAgent {
  readonly agent: CoreAgent;
  readonly life: Life;
}

/** The agent as text, and what the module calls of it. */
async function definitionOf(
  given: object,
  output: RunOutput | undefined,
): Promise<{ config: string; functions: CoreFunctions }> {
  const options = given as AgentOptions;
  const models = new Models(options);
  const config = toJson({ ...configOf(options, models), output: output?.config }, "the agent", withNumbers);
  return { config, functions: functionsOf(options, models, output) };
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
