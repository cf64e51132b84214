import { CODE, type Fields, fields, RpcFault } from "../protocol.js";

/** As deep as the server in Rust reads a value; people's messages stay far below. */
const MAX_DEPTH = 128;

/** What a body holds: one JSON-RPC message. */
export type Posted =
  | { readonly kind: "request"; readonly id: string | number; readonly method: string; readonly message: Fields }
  | { readonly kind: "notification"; readonly method: string; readonly message: Fields }
  | { readonly kind: "response"; readonly message: Fields };

/** What is wrong with a body, and the id of the request that it would have been. */
export class BadMessage extends Error {
  readonly id: string | number | null;
  readonly fault: RpcFault;

  constructor(id: string | number | null, code: number, message: string) {
    super(message);
    this.id = id;
    this.fault = new RpcFault(code, message);
  }
}

/** Reads a body. @throws BadMessage */
export function readMessage(text: string): Posted {
  if (isDeeperThan(text, MAX_DEPTH))
    throw new BadMessage(null, CODE.invalidRequest, "the message is nested too deeply");
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new BadMessage(null, CODE.parse, "the body is not JSON");
  }
  const message = fields(parsed);
  if (message === undefined)
    throw new BadMessage(
      null,
      CODE.invalidRequest,
      "a body is one JSON-RPC message, which is an object; batches are not taken",
    );
  const { id, method } = message;
  if ("id" in message && typeof id !== "string" && !Number.isSafeInteger(id))
    throw new BadMessage(null, CODE.invalidRequest, "an id is a text or a whole number");
  const known = (id as string | number | undefined) ?? null;
  const invalid = (why: string) => new BadMessage(known, CODE.invalidRequest, why);
  if (message.jsonrpc !== "2.0") throw invalid('the member jsonrpc is "2.0"');
  if (!("method" in message)) {
    if (known === null || "result" in message === "error" in message)
      throw invalid("a message has a method, or an id and either a result or an error");
    return { kind: "response", message };
  }
  if (typeof method !== "string") throw invalid("the method is a text");
  const { params = null } = message;
  if (params !== null && fields(params) === undefined) throw invalid("the parameters are an object");
  return known === null ? { kind: "notification", method, message } : { kind: "request", id: known, method, message };
}

/** Whether arrays and objects of a text are nested deeper; for a text that is no JSON the answer means nothing. */
function isDeeperThan(text: string, limit: number): boolean {
  let depth = 0;
  for (const [mark] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (mark === "{" || mark === "[") depth += 1;
    else if (mark === "}" || mark === "]") depth -= 1;
    if (depth > limit) return true;
  }
  return false;
}
