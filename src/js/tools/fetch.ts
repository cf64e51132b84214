import { invalidInput } from "../error.js";
import { readHeaders } from "../headers.js";
import { type MaybePromise, type Tool, tool, type ToolOutput } from "../tool.js";
import { limitedFetch } from "./limited-fetch.js";
import { allowedUrl, originRule } from "./origins.js";
import { responseOutput } from "./response-text.js";

/** What a fetch tool may do. */
export interface FetchToolOptions {
  /** Where requests may go: `https://example.com`, or `https://*.example.com` for every host below it. */
  readonly origins: readonly string[];
  /** The methods allowed. Default: GET and HEAD. */
  readonly methods?: readonly string[];
  /** Sent with each request, such as a `user-agent`; not for keys, which the addresses a model chooses would receive. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The most bytes of an answer that are read; of a longer one the model gets the beginning. Default 500 000. */
  readonly maxBytes?: number;
  /** The most milliseconds of one request, redirects and body included. Default 30 000. */
  readonly timeoutMs?: number;
  /** Whether a person is asked first. Default: for methods other than GET and HEAD. */
  readonly needsApproval?: boolean | ((input: FetchInput) => MaybePromise<boolean>);
  /** Instead of the platform's `fetch`. */
  readonly fetch?: typeof fetch;
}

/** What a model asks a fetch tool for. */
export interface FetchInput {
  url: string;
  method?: string;
  body?: string;
  contentType?: string;
}

/**
 * A tool that gets pages and data from the origins that you allow. It sends no cookies and no other credentials, and follows
 * redirects only to where a request would have been allowed too.
 *
 * In Node, Deno and Bun an allowed name may lead to an address of the local network: allow only names that you trust.
 *
 * @throws CrabletError `invalid-input` when there is no origin, or one that is not valid.
 */
export function fetchTool(options: FetchToolOptions): Tool<FetchInput, ToolOutput> {
  const { origins, maxBytes = 500_000, timeoutMs = 30_000 } = options;
  if (!Array.isArray(origins) || origins.length === 0)
    throw invalidInput(
      'a fetch tool needs the origins that requests may go to: fetchTool({ origins: ["https://example.com"] })',
    );
  const allows = originRule(origins);
  const methods = (options.methods ?? ["GET", "HEAD"]).map((method) => method.toUpperCase());
  const onlyReads = methods.every(isSafe);
  const more = onlyReads
    ? {}
    : {
        method: { type: "string", enum: methods, description: `Default: ${methods[0]}` },
        body: { type: "string", description: "The body of the request" },
        contentType: { type: "string", description: "Of the body. Default: application/json" },
      };
  return tool({
    description: `Fetch a page or data from the web. Only from: ${origins.join(", ")}`,
    input: {
      type: "object",
      properties: { url: { type: "string", description: "The whole address, with https://" }, ...more },
      required: ["url"],
      additionalProperties: false,
    },
    repeatable: onlyReads,
    needsApproval:
      options.needsApproval ??
      (onlyReads ? false : ({ method }: FetchInput) => !isSafe((method ?? methods[0] ?? "").toUpperCase())),
    execute: async (input: FetchInput, { signal }) => {
      const url = allowedUrl(input.url, allows, origins);
      const method = (input.method ?? methods[0] ?? "GET").toUpperCase();
      if (!methods.includes(method)) throw new Error(`${method} is not allowed; allowed are: ${methods.join(", ")}`);
      const headers = readHeaders(options.headers);
      if (input.body !== undefined) {
        if (isSafe(method)) throw new Error(`a ${method} request has no body`);
        headers.set("content-type", input.contentType ?? "application/json");
      }
      return responseOutput(
        await limitedFetch({
          url,
          method,
          headers,
          allows,
          maxBytes,
          timeoutMs,
          signal,
          fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
          ...(input.body !== undefined && { body: input.body }),
        }),
      );
    },
  }) as Tool<FetchInput, ToolOutput>;
}

function isSafe(method: string): boolean {
  return method === "GET" || method === "HEAD";
}
