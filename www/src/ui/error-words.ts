// Says an error in plain words: what happened, and what the reader can do about it here.
import { CrabletError, type ErrorInfo } from "crablet";

export interface ErrorWords {
  readonly title: string;
  readonly advice: string;
}

const WORDS: Readonly<Record<string, ErrorWords>> = {
  auth: { title: "The key was refused", advice: "Check the API key under Connection, then send the message again." },
  "rate-limit": { title: "Too many requests for now", advice: "Wait a little, then send the message again." },
  overloaded: {
    title: "The model is overloaded",
    advice: "The provider has no room at the moment. Try again in a minute, or choose another model.",
  },
  quota: { title: "The account has no credit left", advice: "Add credit with the provider, or use another key." },
  "context-overflow": {
    title: "The conversation is too long for this model",
    advice: "Start a new conversation, or choose a model with a larger context.",
  },
  "bad-request": {
    title: "The model did not accept the request",
    advice: "Check the model's name and the base URL under Connection.",
  },
  "content-filter": { title: "A safety filter stopped the answer", advice: "Say it in other words." },
  server: { title: "The model's server failed", advice: "Nothing is wrong on your side. Try again." },
  network: {
    title: "No connection",
    advice:
      "Check that the address is right and the server runs. A browser also needs the server to allow this page (CORS).",
  },
  timeout: { title: "No answer in time", advice: "The server took the request but did not answer. Try again." },
  "stream-truncated": {
    title: "The answer was cut off",
    advice: "The connection ended before the answer did. Try again.",
  },
  "malformed-stream": {
    title: "The answer could not be read",
    advice: "Check that the base URL belongs to the provider you chose.",
  },
  "malformed-tool-call": {
    title: "The model wrote a tool call that cannot be read",
    advice: "Try again, or choose a stronger model.",
  },
  "connection-closed": {
    title: "The connection to a tool server ended",
    advice: "Look at the server's state under Connection and connect it again.",
  },
  "session-expired": { title: "The tool server forgot this session", advice: "Connect it again under Connection." },
  rpc: { title: "The tool server answered with an error", advice: "Read its message below." },
  protocol: {
    title: "The server did not keep to its protocol",
    advice: "Check that the address belongs to an MCP server.",
  },
  "unsupported-version": {
    title: "No protocol version in common",
    advice: "The server is older or newer than this page understands.",
  },
  "invalid-input": { title: "Something in the settings is not right", advice: "Check the fields under Connection." },
  limit: { title: "A limit was reached", advice: "Send a message to go on from here." },
};

const UNKNOWN: ErrorWords = { title: "Something went wrong", advice: "Try again. If it stays, reload the page." };

/** The words for an error of any kind, unknown ones included. */
export function wordsFor(error: ErrorInfo): ErrorWords {
  return WORDS[error.kind] ?? UNKNOWN;
}

/** Any thrown value as what the page shows. */
export function infoOf(error: unknown): ErrorInfo {
  if (CrabletError.is(error)) return error;
  return { kind: "internal", message: error instanceof Error ? error.message : String(error), retryable: false };
}
