import { invalidInput, messageOf } from "../../error.js";
import { readHeaders } from "../../headers.js";
import { type MaybePromise, type Tool, tool, type ToolOutput } from "../../tool.js";
import { limitedFetch } from "../limited-fetch.js";
import { originRule, type OriginRule } from "../origins.js";
import { responseOutput } from "../response-text.js";
import { clipped } from "../text.js";
import { fields, OpenApiDocument } from "./document.js";
import { type ApiOperation, type OperationPlan, operationsOf, planOperation, uniqueName } from "./operation.js";
import { encodeReserved, type Parameter, pairs, segment } from "./parameters.js";
import { chosenServer, serverOf } from "./servers.js";

/** How an API becomes tools. Needs `server` or `origins`: a document does not decide where requests go. */
export interface OpenApiOptions {
  /** The address in front of every path, in the place of the document's servers. */
  readonly server?: string;
  /** Where requests may go, for the servers of the document: `https://api.example.com`, `https://*.example.com`. */
  readonly origins?: readonly string[];
  /** Where the document comes from, for servers that are relative to it. */
  readonly documentUrl?: string;
  /** Only operations with one of these tags. */
  readonly tags?: readonly string[];
  /** Only these operations, by `operationId`. */
  readonly operations?: readonly string[];
  /** Only the operations for which this says so. */
  readonly filter?: (operation: ApiOperation) => boolean;
  /** Put before each tool's name. */
  readonly prefix?: string;
  /** Gives what authorises a request, before each one. Neither the model nor an event ever sees it. */
  readonly authorize?: (operation: ApiOperation) => MaybePromise<Authorization | undefined>;
  /** Whether a person is asked first. Default: for all methods but GET and HEAD. */
  readonly needsApproval?: boolean | ((operation: ApiOperation) => boolean);
  /** The most bytes of an answer that are read; of a longer one the model gets the beginning. Default 200 000. */
  readonly maxBytes?: number;
  /** The most milliseconds of one request. Default 60 000. */
  readonly timeoutMs?: number;
  /** Instead of the platform's `fetch`. */
  readonly fetch?: typeof fetch;
}

/** What is added to a request. It is sent to the operation's server and to no other, whatever a redirect says. */
export interface Authorization {
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
}

/** What a document became. */
export interface OpenApiTools {
  /** The tools, by name: the `operationId`, with other signs than letters, digits, `_` and `-` replaced. */
  readonly tools: Readonly<Record<string, Tool<Record<string, unknown>, ToolOutput>>>;
  /** The operations that could not become tools, and why. */
  readonly skipped: readonly { readonly operation: string; readonly reason: string }[];
}

/** The longest description of a tool, in UTF-16 units. */
const MAX_DESCRIPTION = 2_000;

/** The most tools of one document; filter a larger one. */
const MAX_TOOLS = 1_000;

/**
 * Makes a tool of each operation of an OpenAPI 3.0 or 3.1 document.
 *
 * Parameters of all places and the JSON body become one input object. References are followed within the document. What a
 * tool gives is the status and the body as text; a status of 400 and more is a failed result.
 *
 * @param document the document as parsed JSON or YAML.
 * @throws CrabletError `invalid-input` when it is no such document, when neither `server` nor `origins` is given, or when it
 *   has more than 1000 operations that the filters leave.
 */
export function openApiTools(document: unknown, options: OpenApiOptions): OpenApiTools {
  const api = new OpenApiDocument(document);
  const { origins, documentUrl } = options;
  const server = options.server === undefined ? undefined : chosenServer(options.server);
  if (server === undefined && (origins === undefined || origins.length === 0))
    throw invalidInput(
      "openApiTools needs to know where requests may go: give the option server, or the option origins",
    );
  const allows = originRule([...(origins ?? []), ...(server === undefined ? [] : [server.origin])]);
  const base = documentUrl === undefined ? undefined : new URL(documentUrl);

  const skipped: { operation: string; reason: string }[] = [];
  const skip = (operation: string, reason: unknown): void => {
    skipped.push({ operation, reason: messageOf(reason) });
  };
  const names = new Set<string>();
  const tools: [string, OpenApiTools["tools"][string]][] = [];
  for (const found of operationsOf(api, skip)) {
    const { operation, given, pathItem } = found;
    if (!isWanted(operation, options)) continue;
    if (tools.length >= MAX_TOOLS)
      throw invalidInput(
        `the document has more than ${MAX_TOOLS} operations: choose some with tags, operations or filter`,
      );
    try {
      const to = server ?? serverOf([given, pathItem, api.root], base, allows);
      const made = operationTool(operation, planOperation(api, found), to, allows, options);
      tools.push([uniqueName(`${options.prefix ?? ""}${operation.id}`, names), made]);
    } catch (reason) {
      skip(operation.id, reason);
    }
  }
  return { tools: Object.fromEntries(tools), skipped };
}

function isWanted(operation: ApiOperation, { tags, operations, filter }: OpenApiOptions): boolean {
  if (tags !== undefined && !operation.tags.some((tag) => tags.includes(tag))) return false;
  if (operations !== undefined && !operations.includes(operation.id)) return false;
  return filter === undefined || filter(operation);
}

function operationTool(
  operation: ApiOperation,
  plan: OperationPlan,
  server: URL,
  allows: OriginRule,
  options: OpenApiOptions,
): OpenApiTools["tools"][string] {
  const { maxBytes = 200_000, timeoutMs = 60_000, needsApproval } = options;
  const onlyReads = operation.method === "GET" || operation.method === "HEAD";
  return tool({
    description: clipped(describe(operation), MAX_DESCRIPTION),
    input: plan.inputSchema,
    repeatable: onlyReads,
    needsApproval: typeof needsApproval === "function" ? needsApproval(operation) : (needsApproval ?? !onlyReads),
    execute: async (given, { signal }) => {
      const input = fields(given) ?? {};
      const url = addressOf(operation, plan, server, input);
      const headers = headersOf(plan, input);
      const authorization = await options.authorize?.(operation);
      for (const [name, value] of Object.entries(authorization?.query ?? {})) url.searchParams.set(name, value);
      const body = plan.body && input[plan.body.property];
      const response = await limitedFetch({
        url,
        method: operation.method,
        headers,
        secretHeaders: readHeaders(authorization?.headers),
        allows,
        maxBytes,
        timeoutMs,
        signal,
        fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return responseOutput(response);
    },
  }) as OpenApiTools["tools"][string];
}

function describe({ summary, description, method, path, deprecated }: ApiOperation): string {
  const told = [summary, description].filter((part) => part !== undefined && part !== "");
  const main = told.length === 0 ? `${method} ${path}` : [...new Set(told)].join("\n\n");
  return deprecated ? `Deprecated. ${main}` : main;
}

/** @throws Error with a message for the model when a value would change the path. */
function addressOf(
  operation: ApiOperation,
  plan: OperationPlan,
  server: URL,
  input: Readonly<Record<string, unknown>>,
): URL {
  const values = new Map(plan.parameters.filter(({ place }) => place === "path").map((part) => [part.name, part]));
  const path = operation.path.replace(/\{([^{}]+)\}/g, (_, name: string) => {
    const parameter = values.get(name);
    const value = parameter && input[parameter.property];
    if (parameter === undefined || value === undefined) throw new Error(`${name} is missing`);
    const written = segment(parameter, value, encodeURIComponent);
    if (written === "") throw new Error(`${parameter.property} is empty, and is part of the address`);
    return written;
  });
  const query = present(plan, "query", input).flatMap(([parameter, value]) =>
    pairs(parameter, value, parameter.allowReserved ? encodeReserved : encodeURIComponent),
  );
  const base = server.pathname.replace(/\/+$/, "");
  const url = new URL(server);
  url.pathname = base + path;
  // An address drops such names, and becomes another one.
  if ((base + path).split("/").some((name) => /^(\.|%2e){1,2}$/i.test(name)))
    throw new Error('a value would lead to another address: "." and ".." are not allowed in it');
  url.search = [server.search.slice(1), ...query].filter((part) => part !== "").join("&");
  return url;
}

/** @throws Error with a message for the model when a value cannot stand in a header. */
function headersOf(plan: OperationPlan, input: Readonly<Record<string, unknown>>): Headers {
  const headers = new Headers({ accept: "application/json, text/*;q=0.9, */*;q=0.5" });
  for (const [parameter, value] of present(plan, "header", input))
    setHeader(headers, parameter, segment(parameter, value, String));
  const cookies = present(plan, "cookie", input).flatMap(([parameter, value]) =>
    pairs(parameter, value, encodeURIComponent),
  );
  if (cookies.length > 0) headers.set("cookie", cookies.join("; "));
  if (plan.body && input[plan.body.property] !== undefined) headers.set("content-type", plan.body.mediaType);
  return headers;
}

function setHeader(
  headers: Headers,
  { name, property }: Parameter & { readonly property: string },
  value: string,
): void {
  try {
    headers.set(name, value);
  } catch {
    throw new Error(`${property} goes into a header, and holds a character that cannot stand there`);
  }
}

/** The parameters of a place that have a value, with it. */
function present(plan: OperationPlan, place: Parameter["place"], input: Readonly<Record<string, unknown>>) {
  return plan.parameters
    .filter((parameter) => parameter.place === place && input[parameter.property] !== undefined)
    .map((parameter) => [parameter, input[parameter.property]] as const);
}
