import type { JsonSchema } from "../schema.js";
import { type Fields, fields } from "./protocol.js";

/** What a client is asked for while a call waits. */
export interface InputRequest {
  readonly method: "elicitation/create" | "sampling/createMessage" | "roots/list";
  readonly params: Readonly<Record<string, unknown>>;
}

/** The requests that a client can be asked. */
export const ask = {
  /** Asks the user to fill in a form, which a flat JSON Schema of an object describes. */
  form: (message: string, requestedSchema: JsonSchema): InputRequest => ({
    method: "elicitation/create",
    params: { message, requestedSchema },
  }),
  /** Asks the user to open an address and do something there. The answer says that the user agreed, not that it is done. */
  url: (message: string, url: string, elicitationId: string): InputRequest => ({
    method: "elicitation/create",
    params: { mode: "url", message, url, elicitationId },
  }),
  /** Asks the client's model; the parameters are those of `sampling/createMessage`. */
  model: (params: Readonly<Record<string, unknown>>): InputRequest => ({ method: "sampling/createMessage", params }),
  /** Asks which folders the client works in. */
  roots: (): InputRequest => ({ method: "roots/list", params: {} }),
};

const NEEDS_INPUT = Symbol.for("crablet.needs-input");

/** What a function of a server returns when the client is to be asked first. */
export interface NeedsInput {
  readonly requests: Readonly<Record<string, InputRequest>>;
  readonly state?: string;
}

/**
 * Returned by a function of a server: asks the client first. The function is called again with the answers in
 * `context.inputResponses`, and with `state`, which the client sees, in `context.requestState`.
 */
export function needsInput(requests: NeedsInput["requests"], state?: string): NeedsInput {
  const needed = state === undefined ? { requests } : { requests, state };
  return Object.defineProperty(needed, NEEDS_INPUT, { value: true });
}

export function isNeedsInput(value: unknown): value is NeedsInput {
  return typeof value === "object" && value !== null && NEEDS_INPUT in value;
}

/** The capability that a client needs to be asked for this. */
export function capabilityOf({ method }: InputRequest): string {
  if (method === "elicitation/create") return "elicitation";
  return method === "sampling/createMessage" ? "sampling" : "roots";
}

export function isOffered(request: InputRequest, capabilities: Fields): boolean {
  const offered = fields(capabilities[capabilityOf(request)]);
  if (offered === undefined) return false;
  if (request.params.mode === "url") return "url" in offered;
  // A form is offered unless only addresses are.
  return !("url" in offered) || "form" in offered;
}
