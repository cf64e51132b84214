import { messageOf } from "../error.js";
import { validate } from "../schema.js";
import type { Caller, Catalog, ServerContext, ServerTool } from "./catalog.js";
import { schemaFaults } from "./check-schema.js";
import { capabilityOf, isNeedsInput, isOffered, type NeedsInput } from "./input-request.js";
import {
  CODE,
  type Fields,
  fields,
  HANDSHAKE,
  invalidParams,
  isLogLevel,
  LATEST_HANDSHAKE,
  LOG_LEVELS,
  type LogLevel,
  RpcFault,
  STATELESS,
} from "./protocol.js";
import {
  failedTool,
  promptMessages,
  renderPrompt,
  renderResource,
  renderTool,
  resourceContents,
  toolResult,
} from "./render.js";

/** The most calls at work for one connection. */
const MAX_CALLS = 1_000;
/** The most subscriptions of one connection. */
const MAX_SUBSCRIPTIONS = 1_000;
/** How often one call may ask the client. */
const MAX_ROUNDS = 20;
/** The most completions of one answer. */
const MAX_COMPLETIONS = 100;

const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel";

/** What a connection needs of its server. */
export interface Served {
  readonly info: Fields;
  readonly instructions: string | undefined;
  readonly logging: boolean;
  readonly pageSize: number;
  readonly catalog: Catalog;
  /** Whether tools may come while there are none. */
  readonly awaitsTools: boolean;
  readonly available: ((tool: string) => string | undefined) | undefined;
  readonly approve: ((call: { readonly toolName: string; readonly input: unknown }) => unknown) | undefined;
  readonly complete: Complete | undefined;
}

/** Completes an argument of a prompt, or a name of a resource's template. */
export type Complete = (request: {
  readonly of: string;
  readonly kind: "prompt" | "resource";
  readonly argument: string;
  readonly value: string;
  readonly known: Readonly<Record<string, string>>;
}) => readonly string[] | PromiseLike<readonly string[]>;

/** What a request says of itself and of its client. */
interface RequestContext {
  readonly id: string | number;
  readonly version: string;
  readonly meta: Fields;
  readonly capabilities: Fields;
}

/** A result, or that the client is asked first. */
type Answering = (context: ServerContext) => Promise<Fields | NeedsInput>;

/** One client of a server. */
export class Connection {
  readonly #served: () => Served;
  /** Sends a message, and tells which request it is about if it is about one that it does not answer. */
  readonly #send: (message: Fields, about?: string | number) => void;
  readonly #caller: Caller | undefined;
  readonly #closed: () => void;
  readonly #calls = new Map<string, AbortController>();
  readonly #questions = new Map<string, { resolve: (answer: unknown) => void; reject: (error: Error) => void }>();
  readonly #listening = new Map<string, { readonly id: string | number; readonly wanted: Fields }>();
  readonly #followed = new Set<string>();
  #client: { readonly version: string; readonly capabilities: Fields } | undefined;
  #logLevel: LogLevel = "info";
  #nextQuestion = 0;
  #isClosed = false;

  constructor(
    served: () => Served,
    send: (message: Fields, about?: string | number) => void,
    caller: Caller | undefined,
    closed: () => void,
  ) {
    this.#served = served;
    this.#caller = caller;
    this.#closed = closed;
    this.#send = (message, about) => {
      // Only what JSON has goes out, as over any other way; a port would refuse functions.
      if (!this.#isClosed) send(JSON.parse(JSON.stringify({ jsonrpc: "2.0", ...message })), about);
    };
  }

  /** Takes a message of the client, as an object or as its text. Never throws: what is wrong with it is answered. */
  receive(data: unknown): void {
    let message: unknown = data;
    if (typeof data === "string") {
      try {
        message = JSON.parse(data);
      } catch {
        this.#fail(null, new RpcFault(CODE.parse, "the message is not JSON"));
        return;
      }
    }
    const read = fields(message);
    if (read === undefined) this.#fail(null, new RpcFault(CODE.invalidRequest, "a message is one JSON object"));
    else this.#take(read);
  }

  /** Stops every call. */
  close(): void {
    this.#isClosed = true;
    const reason = new DOMException("the connection is closed", "AbortError");
    for (const call of this.#calls.values()) call.abort(reason);
    for (const { reject } of this.#questions.values()) reject(reason);
    this.#calls.clear();
    this.#questions.clear();
    this.#listening.clear();
    this.#closed();
  }

  /** Tells the client that a list changed, if it wants to know. */
  listChanged(kind: "tools" | "prompts" | "resources"): void {
    const method = `notifications/${kind}/list_changed`;
    if (this.#client !== undefined) this.#send({ method });
    this.#announce(method, {}, (wanted) => wanted[`${kind}ListChanged`] === true);
  }

  /** Tells the client that a resource changed, if it follows it. */
  resourceUpdated(uri: string): void {
    const method = "notifications/resources/updated";
    if (this.#followed.has(uri)) this.#send({ method, params: { uri } });
    this.#announce(method, { uri }, (wanted) => listOf(wanted.resourceSubscriptions).includes(uri));
  }

  #announce(method: string, params: Fields, wants: (wanted: Fields) => boolean): void {
    for (const { id, wanted } of this.#listening.values())
      if (wants(wanted)) this.#send({ method, params: { ...params, _meta: subscriptionMeta(id) } }, id);
  }

  #take(message: Fields): void {
    const { method } = message;
    const id = typeof message.id === "string" || typeof message.id === "number" ? message.id : undefined;
    if (typeof method === "string" && !("id" in message)) this.#notified(method, fields(message.params) ?? {});
    else if (typeof method === "string" && id !== undefined) this.#request(id, method, message.params);
    else if (!("method" in message) && ("result" in message || "error" in message)) this.#answered(message);
    else if (typeof method === "string")
      this.#fail(null, new RpcFault(CODE.invalidRequest, "an id is a text or a number"));
    else if ("id" in message)
      this.#fail(id ?? null, new RpcFault(CODE.invalidRequest, "a request has a method, which is a text"));
  }

  #notified(method: string, params: Fields): void {
    if (method !== "notifications/cancelled") return;
    const key = JSON.stringify(params.requestId);
    this.#listening.delete(key);
    this.#calls.get(key)?.abort(new DOMException("the client wants no answer any more", "AbortError"));
    this.#calls.delete(key);
  }

  #answered({ id, result, error }: Fields): void {
    const question = typeof id === "string" ? this.#questions.get(id) : undefined;
    if (question === undefined) return;
    this.#questions.delete(id as string);
    if (error === undefined) question.resolve(result);
    else question.reject(new Error(`the client did not answer what it was asked: ${messageOf(error)}`));
  }

  #request(id: string | number, method: string, given: unknown): void {
    try {
      const params = given === undefined || given === null ? {} : fields(given);
      if (params === undefined) throw invalidParams("the parameters are an object");
      const meta = fields(params._meta) ?? {};
      const isStateless = VERSION_KEY in meta || (method === "server/discover" && this.#client === undefined);
      if (isStateless) this.#stateless(statelessContext(id, meta), method, params);
      else this.#handshake(id, method, params, meta);
    } catch (thrown) {
      this.#fail(id, thrown);
    }
  }

  #stateless(context: RequestContext, method: string, params: Fields): void {
    const { id } = context;
    if (method === "server/discover") {
      const { info, instructions } = this.#served();
      const found = {
        supportedVersions: [STATELESS],
        capabilities: this.#capabilities(STATELESS),
        ...(instructions !== undefined && { instructions }),
        _meta: { "io.modelcontextprotocol/serverInfo": info },
      };
      this.#reply(id, cacheable(found));
    } else if (method === "subscriptions/listen") this.#listen(id, fields(params.notifications) ?? {});
    else this.#shared(context, method, params);
  }

  #listen(id: string | number, wanted: Fields): void {
    if (this.#listening.size >= MAX_SUBSCRIPTIONS)
      throw new RpcFault(CODE.internal, "there are too many subscriptions");
    const flags = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"].filter(
      (name) => wanted[name] === true,
    );
    const uris = listOf(wanted.resourceSubscriptions)
      .filter((uri) => typeof uri === "string")
      .slice(0, MAX_SUBSCRIPTIONS);
    const honoured: Fields = {
      ...Object.fromEntries(flags.map((name) => [name, true])),
      ...(uris.length > 0 && { resourceSubscriptions: uris }),
    };
    this.#listening.set(JSON.stringify(id), { id, wanted: honoured });
    const params = { notifications: honoured, _meta: subscriptionMeta(id) };
    this.#send({ method: "notifications/subscriptions/acknowledged", params }, id);
  }

  #handshake(id: string | number, method: string, params: Fields, meta: Fields): void {
    if (method === "initialize") {
      const wanted = String(params.protocolVersion);
      const version = HANDSHAKE.includes(wanted) ? wanted : LATEST_HANDSHAKE;
      this.#client = { version, capabilities: fields(params.capabilities) ?? {} };
      const { info, instructions } = this.#served();
      const capabilities = this.#capabilities(version);
      const answer = { protocolVersion: version, capabilities, serverInfo: info };
      this.#reply(id, instructions === undefined ? answer : { ...answer, instructions });
      return;
    }
    if (method === "ping") {
      this.#reply(id, {});
      return;
    }
    if (this.#client === undefined) {
      if (!METHODS.has(method)) throw unknownMethod(method);
      throw new RpcFault(CODE.notInitialized, "the server is not initialized: send initialize first");
    }
    const context = { id, meta, ...this.#client };
    const { logging, catalog } = this.#served();
    const hasResources = catalog.resources.length + catalog.templates.length > 0;
    if (method === "logging/setLevel" && logging) {
      if (!isLogLevel(params.level)) throw invalidParams("the level is one of debug to emergency, as in RFC 5424");
      this.#logLevel = params.level;
      this.#reply(id, {});
    } else if (hasResources && (method === "resources/subscribe" || method === "resources/unsubscribe")) {
      const uri = textOf(params, "uri");
      if (method === "resources/unsubscribe") this.#followed.delete(uri);
      else if (this.#followed.size >= MAX_SUBSCRIPTIONS)
        throw new RpcFault(CODE.internal, "there are too many subscriptions");
      else this.#followed.add(uri);
      this.#reply(id, {});
    } else this.#shared(context, method, params);
  }

  /** The methods that both eras have. */
  #shared(context: RequestContext, method: string, params: Fields): void {
    const { catalog, complete } = this.#served();
    if (method.endsWith("/list") && METHODS.has(method)) this.#reply(context.id, this.#list(context, method, params));
    else if (method === "tools/call") this.#callTool(context, params);
    else if (method === "resources/read" && catalog.resources.length + catalog.templates.length > 0)
      this.#readResource(context, params);
    else if (method === "prompts/get" && catalog.prompts.size > 0) this.#getPrompt(context, params);
    else if (method === "completion/complete" && complete !== undefined) this.#complete(context, params, complete);
    else throw unknownMethod(method);
  }

  #callTool(context: RequestContext, params: Fields): void {
    const name = textOf(params, "name");
    const tool = this.#served().catalog.tools.get(name);
    if (tool === undefined) throw invalidParams(`there is no tool ${JSON.stringify(name)}`);
    this.#start(context, params, async (call) => {
      const checked = await checkInput(name, tool, params.arguments ?? {});
      if ("fault" in checked) {
        if (context.version < "2025-11-25") throw invalidParams(checked.fault);
        return failedTool(checked.fault);
      }
      const refused = this.#served().available?.(name) ?? (await this.#refusal(name, tool, checked.input));
      if (refused !== undefined) return failedTool(refused);
      try {
        const returned = await tool.execute(checked.input, call);
        return isNeedsInput(returned) ? returned : toolResult(name, tool, returned, context.version);
      } catch (thrown) {
        if (thrown instanceof RpcFault) throw thrown;
        return failedTool(messageOf(thrown));
      }
    });
  }

  /** Why a tool that needs an approval does not run. */
  async #refusal(toolName: string, { needsApproval }: ServerTool, input: unknown): Promise<string | undefined> {
    const isAsked = typeof needsApproval === "function" ? await needsApproval(input) : (needsApproval ?? false);
    if (!isAsked) return undefined;
    const { approve } = this.#served();
    if (approve === undefined) return "this call needs the approval of a person, and there is nobody to ask";
    return (await approve({ toolName, input })) === true
      ? undefined
      : "the person who was asked did not allow this call";
  }

  #readResource(context: RequestContext, params: Fields): void {
    const uri = textOf(params, "uri");
    const missing = context.version === STATELESS ? CODE.invalidParams : CODE.resourceNotFound;
    const notFound = new RpcFault(missing, "there is no such resource", { uri });
    const found = this.#served().catalog.find(uri);
    if (found === undefined) throw notFound;
    this.#start(context, params, async (call) => {
      const content = await found.resource.read(uri, found.variables, call);
      if (isNeedsInput(content)) return content;
      if (content === undefined) throw notFound;
      return cacheable({ contents: resourceContents(uri, found.resource, content) }, context.version);
    });
  }

  #getPrompt(context: RequestContext, params: Fields): void {
    const name = textOf(params, "name");
    const prompt = this.#served().catalog.prompts.get(name);
    if (prompt === undefined) throw invalidParams(`there is no prompt ${JSON.stringify(name)}`);
    const given = textsOf(params.arguments);
    for (const [argument, { required }] of Object.entries(prompt.arguments ?? {}))
      if (required && !Object.hasOwn(given, argument))
        throw invalidParams(`the argument ${JSON.stringify(argument)} is missing`);
    this.#start(context, params, async (call) => {
      const messages = await prompt.get(given, call);
      if (isNeedsInput(messages)) return messages;
      const about = prompt.description === undefined ? {} : { description: prompt.description };
      return { ...about, messages: promptMessages(messages) };
    });
  }

  #complete(context: RequestContext, params: Fields, complete: Complete): void {
    const reference = fields(params.ref);
    const argument = fields(params.argument);
    if (reference === undefined || argument === undefined) throw invalidParams("the ref or the argument is missing");
    const isPrompt = reference.type === "ref/prompt";
    if (!isPrompt && reference.type !== "ref/resource")
      throw invalidParams("the ref is of the type ref/prompt or ref/resource");
    const request = {
      of: textOf(reference, isPrompt ? "name" : "uri"),
      kind: isPrompt ? ("prompt" as const) : ("resource" as const),
      argument: textOf(argument, "name"),
      value: typeof argument.value === "string" ? argument.value : "",
      known: textsOf(fields(params.context)?.arguments),
    };
    this.#start(context, params, async () => {
      const values = [...(await complete(request))];
      const hasMore = values.length > MAX_COMPLETIONS;
      return { completion: { values: values.slice(0, MAX_COMPLETIONS), total: values.length, hasMore } };
    });
  }

  /** Runs a function beside the others, again after each time it asks the client, and answers. */
  #start(context: RequestContext, params: Fields, answering: Answering): void {
    const key = JSON.stringify(context.id);
    if (this.#calls.has(key)) {
      this.#fail(null, new RpcFault(CODE.invalidRequest, "a request of this id is at work already"));
      return;
    }
    if (this.#calls.size >= MAX_CALLS)
      throw new RpcFault(CODE.internal, "too many requests are at work; wait for answers");
    const controller = new AbortController();
    this.#calls.set(key, controller);
    const finish = (answer: () => void): void => {
      // A call that was cancelled gets no answer.
      if (this.#calls.get(key) !== controller) return;
      this.#calls.delete(key);
      answer();
    };
    this.#run(context, params, answering, controller.signal).then(
      (result) => finish(() => this.#reply(context.id, result)),
      (thrown) => finish(() => this.#fail(context.id, thrown)),
    );
  }

  async #run(context: RequestContext, params: Fields, answering: Answering, signal: AbortSignal): Promise<Fields> {
    const isStateless = context.version === STATELESS;
    let responses = (isStateless ? fields(params.inputResponses) : undefined) ?? {};
    let state = isStateless && typeof params.requestState === "string" ? params.requestState : undefined;
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const outcome = await answering(this.#context(context, responses, state, signal));
      if (!isNeedsInput(outcome))
        return isStateless && !("resultType" in outcome) ? { ...outcome, resultType: "complete" } : outcome;
      const missing = Object.values(outcome.requests).find((request) => !isOffered(request, context.capabilities));
      if (missing !== undefined) {
        const capability = capabilityOf(missing);
        const why = `this needs a client that can be asked (${capability}), which this one did not say it can`;
        if (!isStateless) return failedTool(why);
        throw new RpcFault(CODE.missingCapability, why, { requiredCapabilities: { [capability]: {} } });
      }
      if (isStateless)
        return {
          resultType: "input_required",
          inputRequests: outcome.requests,
          ...(outcome.state !== undefined && { requestState: outcome.state }),
        };
      ({ state } = outcome);
      try {
        responses = await this.#ask(outcome, context.id, signal);
      } catch (thrown) {
        signal.throwIfAborted();
        return failedTool(messageOf(thrown));
      }
    }
    throw new RpcFault(CODE.internal, `the server asked the client ${MAX_ROUNDS} times`);
  }

  async #ask({ requests }: NeedsInput, about: string | number, signal: AbortSignal): Promise<Fields> {
    const asked = Object.entries(requests).map(([key, { method, params }]) => {
      const id = `server-${this.#nextQuestion}`;
      this.#nextQuestion += 1;
      const answer = new Promise<unknown>((resolve, reject) => {
        this.#questions.set(id, { resolve, reject });
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
      this.#send({ id, method, params }, about);
      return answer.then((given) => [key, given] as const).finally(() => this.#questions.delete(id));
    });
    return Object.fromEntries(await Promise.all(asked));
  }

  #context(
    { id, version, meta, capabilities }: RequestContext,
    inputResponses: Fields,
    requestState: string | undefined,
    signal: AbortSignal,
  ): ServerContext {
    const { progressToken: token } = meta;
    const wantsProgress = typeof token === "string" || typeof token === "number";
    return {
      callId: String(id),
      signal,
      inputResponses,
      requestState,
      caller: this.#caller,
      canAsk: (request) => isOffered(request, capabilities),
      progress: (data) => {
        const report = typeof data === "number" ? { progress: data } : fields(data);
        if (wantsProgress && typeof report?.progress === "number" && !signal.aborted)
          this.#send({ method: "notifications/progress", params: { progressToken: token, ...report } }, id);
      },
      log: (level, data, logger) => {
        const asked = meta[LOG_LEVEL_KEY];
        const wanted = version === STATELESS ? (isLogLevel(asked) ? asked : undefined) : this.#logLevel;
        if (!this.#served().logging || wanted === undefined || LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(wanted))
          return;
        const params = { level, ...(logger !== undefined && { logger }), data };
        this.#send({ method: "notifications/message", params }, id);
      },
    };
  }

  #list({ version }: RequestContext, method: string, { cursor }: Fields): Fields {
    const { catalog, pageSize } = this.#served();
    const lists: Record<string, readonly [string, readonly (() => Fields)[]]> = {
      "tools/list": [
        "tools",
        [...catalog.tools].map(
          ([name, tool]) =>
            () =>
              renderTool(name, tool, version),
        ),
      ],
      "prompts/list": [
        "prompts",
        [...catalog.prompts].map(
          ([name, prompt]) =>
            () =>
              renderPrompt(name, prompt, version),
        ),
      ],
      "resources/list": [
        "resources",
        catalog.resources.map(
          ({ uri, resource }) =>
            () =>
              renderResource(uri, resource, version),
        ),
      ],
      "resources/templates/list": [
        "resourceTemplates",
        catalog.templates.map(
          ({ uri, resource }) =>
            () =>
              renderResource(uri, resource, version),
        ),
      ],
    };
    const [name, all] = lists[method] ?? ["", []];
    const isCursor = typeof cursor === "string" && /^\d{1,9}$/.test(cursor) && Number(cursor) <= all.length;
    if (cursor !== undefined && cursor !== null && !isCursor)
      throw invalidParams("the cursor is not one that this server gave");
    const start = isCursor ? Number(cursor) : 0;
    const end = Math.min(start + pageSize, all.length);
    const page = { [name]: all.slice(start, end).map((render) => render()) };
    return cacheable(end < all.length ? { ...page, nextCursor: String(end) } : page, version);
  }

  #capabilities(version: string): Fields {
    const { catalog, awaitsTools, complete, logging } = this.#served();
    const hasResources = catalog.resources.length + catalog.templates.length > 0;
    return {
      ...((awaitsTools || catalog.tools.size > 0) && { tools: { listChanged: true } }),
      ...(hasResources && { resources: { listChanged: true, subscribe: true } }),
      ...(catalog.prompts.size > 0 && { prompts: { listChanged: true } }),
      ...(complete !== undefined && version >= "2025-03-26" && { completions: {} }),
      ...(logging && { logging: {} }),
    };
  }

  #reply(id: string | number, result: Fields): void {
    try {
      this.#send({ id, result });
    } catch (thrown) {
      this.#fail(id, thrown);
    }
  }

  #fail(id: string | number | null, thrown: unknown): void {
    const fault = thrown instanceof RpcFault ? thrown : new RpcFault(CODE.internal, messageOf(thrown));
    const { code, message, data } = fault;
    this.#send({ id, error: { code, message, ...(data !== undefined && { data }) } });
  }
}

async function checkInput(
  name: string,
  tool: ServerTool,
  given: unknown,
): Promise<{ readonly input: unknown } | { readonly fault: string }> {
  const { jsonSchema, standard } = tool.schema;
  const fault = (why: string) => ({ fault: `the arguments of ${name} are not valid: ${why}` });
  if (fields(given) === undefined) return fault("the arguments are an object");
  if (standard === undefined) {
    const faults = schemaFaults(jsonSchema, given);
    return faults.length > 0 ? fault(faults.join("; ")) : { input: given };
  }
  try {
    return { input: await validate(standard, given) };
  } catch (thrown) {
    return fault(messageOf(thrown));
  }
}

function statelessContext(id: string | number, meta: Fields): RequestContext {
  const version = meta[VERSION_KEY];
  if (typeof version !== "string") throw invalidParams(`_meta lacks ${VERSION_KEY}, which says the protocol's version`);
  if (version !== STATELESS)
    throw new RpcFault(CODE.unsupportedVersion, `the protocol version ${version} is not spoken here in this way`, {
      supported: [STATELESS],
      requested: version,
    });
  const capabilities = fields(meta[CAPABILITIES_KEY]);
  if (capabilities === undefined)
    throw invalidParams(`_meta lacks ${CAPABILITIES_KEY}, which is an object, if an empty one`);
  return { id, version, meta, capabilities };
}

/** A result that may be kept for a while, where the era says so: not at all, and by nobody else. */
function cacheable(result: Fields, version: string = STATELESS): Fields {
  return version === STATELESS ? { ...result, resultType: "complete", ttlMs: 0, cacheScope: "private" } : result;
}

function subscriptionMeta(id: string | number): Fields {
  return { "io.modelcontextprotocol/subscriptionId": id };
}

function unknownMethod(method: string): RpcFault {
  return new RpcFault(CODE.methodNotFound, `there is no method ${method}`);
}

function textOf(params: Fields, name: string): string {
  const value = params[name];
  if (typeof value !== "string") throw invalidParams(`${name} is missing, or no text`);
  return value;
}

/** Members that are all texts; none when they are absent. */
function textsOf(value: unknown): Record<string, string> {
  if (value === undefined || value === null) return {};
  const given = fields(value);
  if (given === undefined || Object.values(given).some((text) => typeof text !== "string"))
    throw invalidParams("arguments are an object of texts");
  return given as Record<string, string>;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** What both eras have, and what a client may ask for before it says `initialize`. */
const METHODS: ReadonlySet<string> = new Set([
  "tools/list",
  "tools/call",
  "resources/list",
  "resources/read",
  "resources/templates/list",
  "resources/subscribe",
  "resources/unsubscribe",
  "prompts/list",
  "prompts/get",
  "completion/complete",
  "logging/setLevel",
]);
