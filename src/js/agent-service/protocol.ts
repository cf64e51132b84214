import { fromBase64, toBase64 } from "../base64.js";
import { type ErrorInfo, invalidInput } from "../error.js";
import type { AgentEvent } from "../event.js";
import type { FilePart, Message, TextPart, ToolResultPart } from "../message.js";

/** What an agent behind subjects is called, by worker and client alike. */
export interface ServiceName {
  /** The name of the agent: 1 to 64 of letters, digits, `-` and `_`. */
  readonly name: string;
  /** What all subjects and streams begin with, of the same letters. Default `crablet`. */
  readonly prefix?: string;
}

/** @internal A stream and a subject in it. */
export interface StreamSubject {
  readonly stream: string;
  readonly subject: string;
}

/** @internal The names of streams and subjects. docs/agent-service.md has them as a table. */
export interface Names {
  readonly inputStream: string;
  readonly inputSubjects: string;
  readonly eventStream: string;
  readonly eventSubjects: string;
  readonly sessions: string;
  readonly claims: string;
  readonly workers: string;
  input(session: string): StreamSubject;
  events(session: string): StreamSubject;
  claim(session: string): StreamSubject;
  worker(worker: string): StreamSubject;
}

/** @internal */
export function namesOf({ name, prefix = "crablet" }: ServiceName): Names {
  for (const [what, value] of Object.entries({ name, prefix })) {
    if (typeof value !== "string" || !NAME.test(value))
      throw invalidInput(
        `the ${what} of an agent service is 1 to 64 of letters, digits, "-" and "_": ${JSON.stringify(value)} is not`,
      );
  }
  const base = `${prefix}_${name}`;
  const inputStream = `${base}_input`;
  const eventStream = `${base}_events`;
  const bucket = (kind: string) => `${base}_${kind}`;
  return {
    inputStream,
    inputSubjects: `${prefix}.${name}.input.*`,
    eventStream,
    eventSubjects: `${prefix}.${name}.events.*`,
    sessions: bucket("sessions"),
    claims: bucket("claims"),
    workers: bucket("workers"),
    input: (session) => ({ stream: inputStream, subject: `${prefix}.${name}.input.${tokenOf(session)}` }),
    events: (session) => ({ stream: eventStream, subject: `${prefix}.${name}.events.${tokenOf(session)}` }),
    claim: (session) => keyOf(bucket("claims"), tokenOf(session)),
    worker: (worker) => keyOf(bucket("workers"), worker),
  };
}

/** @internal The stream and subject that a key of a bucket is. */
export const keyOf = (bucket: string, key: string): StreamSubject => ({
  stream: `KV_${bucket}`,
  subject: `$KV.${bucket}.${key}`,
});

/**
 * The id of a session as a token of a subject: itself when it is of letters, digits, `-` and `_`, else `=` and the base64url of
 * its UTF-8.
 *
 * @internal
 */
export function tokenOf(session: string): string {
  const token = PLAIN.test(session) ? session : `=${base64Url(new TextEncoder().encode(session))}`;
  if (session === "" || token.length > MAX_TOKEN)
    throw invalidInput(`the id of a session has 1 to ${MAX_TOKEN} letters as a token of a subject`);
  return token;
}

/** @internal The id that `tokenOf` was given; `undefined` when it was none. */
export function sessionOf(token: string): string | undefined {
  if (!token.startsWith("=")) return PLAIN.test(token) ? token : undefined;
  try {
    return new TextDecoder().decode(fromBase64(token.slice(1).replaceAll("-", "+").replaceAll("_", "/")));
  } catch {
    return undefined;
  }
}

const base64Url = (bytes: Uint8Array): string =>
  toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/** What a client sends a session. */
export type ServiceInput = { readonly id: string } & (
  | { readonly type: "prompt" | "follow-up" | "steer"; readonly content: readonly (TextPart | FilePart)[] }
  | { readonly type: "abort"; readonly reason?: string }
  | {
      readonly type: "approve";
      readonly callId: string;
      readonly allow: boolean;
      readonly reason?: string;
      readonly inputHash?: string;
    }
  | { readonly type: "tool-result"; readonly callId: string; readonly output: unknown }
);

/** What the service says beside the events of runs. Types and fields may be added. */
export type ServiceEvent =
  /** A worker has taken an input. `messageId` is that of a steered message or a follow-up that waits. */
  | {
      readonly type: "input-accepted";
      readonly inputId: string;
      readonly inputType: ServiceInput["type"];
      readonly messageId?: string;
    }
  /** Nothing can be done with an input. */
  | { readonly type: "input-refused"; readonly inputId: string; readonly error: ErrorInfo }
  /**
   * Another worker goes on, or the same one anew: what was shown before holds only as far as it is in here. `messages` is the
   * history from the last prompt on, `results` are those of the open step that are saved; calls without one are worked on again.
   */
  | {
      readonly type: "session-restored";
      readonly isOpen: boolean;
      readonly messages: readonly Message[];
      readonly results: readonly ToolResultPart[];
    }
  /**
   * A run is open that no worker can go on with, since its agent cannot be made: `error` is what every attempt ended with. It is
   * gone on with when the next input comes.
   */
  | { readonly type: "session-failed"; readonly error: ErrorInfo }
  /** An event was longer than a message may be. What it told of is in the session. */
  | { readonly type: "event-too-long"; readonly of: string; readonly bytes: number; readonly callId?: string }
  /** Events before this one are gone, by the limits of the stream. Said by the client. */
  | { readonly type: "events-missed" };

/** An event of a session behind subjects. */
export type SessionEvent = AgentEvent | ServiceEvent;

/** @internal Whether a run is at work as of the end of a message of events. */
export interface RunPhase {
  readonly phase: "none" | "running" | "suspended" | "ended";
  readonly runId?: string;
}

/** @internal A message of the stream of events. */
export interface EventMessage extends RunPhase {
  readonly v: 1;
  readonly id: string;
  readonly worker: string;
  /** The sequence of the message before it of the session, 0 for the first. */
  readonly previous: number;
  readonly events: readonly SessionEvent[];
}

/**
 * Reads an input.
 *
 * @throws CrabletError `invalid-input` when it is none.
 * @internal
 */
export function parseInput(text: string): ServiceInput {
  const input = objectOf(text);
  const isText = (value: unknown): boolean => typeof value === "string" && value !== "";
  if (input === undefined || !isText(input.id)) throw invalidInput("an input is a JSON object with an id");
  switch (input.type) {
    case "prompt":
    case "follow-up":
    case "steer":
      if (!Array.isArray(input.content) || !input.content.every(isPart))
        throw invalidInput(`the content of a ${input.type} is a list of parts, each with a type`);
      break;
    case "approve":
      if (!isText(input.callId) || typeof input.allow !== "boolean")
        throw invalidInput("an approval has a callId and allow");
      break;
    case "tool-result":
      if (!isText(input.callId)) throw invalidInput("a tool-result has a callId");
      break;
    case "abort":
      break;
    default:
      throw invalidInput(`there is no input of type ${JSON.stringify(input.type)}`);
  }
  return input as unknown as ServiceInput;
}

const isPart = (part: unknown): boolean =>
  typeof part === "object" && part !== null && typeof (part as { type?: unknown }).type === "string";

/** @internal A message of events; `undefined` when it is none. */
export function parseEvents(text: string): EventMessage | undefined {
  const message = objectOf(text);
  if (message === undefined || !Array.isArray(message.events)) return undefined;
  return message as unknown as EventMessage;
}

/** @internal The phase after an event. */
export function phaseAfter(before: RunPhase, event: SessionEvent): RunPhase {
  switch (event.type) {
    case "run-start":
      return { phase: "running", runId: event.runId };
    case "run-suspended":
      return { phase: "suspended", runId: event.runId };
    case "run-end":
      return { phase: "ended", runId: event.runId };
    case "session-restored":
      return event.isOpen ? { ...before, phase: "running" } : { ...before, phase: "ended" };
    case "approval-response":
    case "tool-result":
      return before.phase === "suspended" ? { ...before, phase: "running" } : before;
    default:
      return before;
  }
}

function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const PLAIN = /^[A-Za-z0-9_-]+$/;
/** The most letters of a token: subjects are matched by the server for each message. */
const MAX_TOKEN = 256;
