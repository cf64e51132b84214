import { CrabletError, type ErrorKind, messageOf } from "../error.js";
import type { FilePart, Message, TextPart } from "../message.js";
import type { ModelChunk, ModelFunction, ModelRequest } from "../model.js";
import { assistantText, resultText } from "./messages.js";
import { structureOf, StructureReader } from "./structured.js";

/** The browser's `LanguageModel`, as far as it is used. */
export interface PromptApi {
  /** `unavailable`, or how near the model is. */
  availability(options?: any): Promise<string>;
  /** Begins a session, and downloads the model where it is not there yet. */
  create(options?: any): Promise<PromptApiSession>;
}

/** A session of the browser's model. */
export interface PromptApiSession {
  /** Answers with the text as it comes. */
  promptStreaming(input: any, options?: any): ReadableStream<string>;
  /** Ends the session and frees what it holds. */
  destroy(): void;
}

/** How the browser's model is used. */
export interface PromptApiOptions {
  /** Told of the download of the model, from 0 to 1, where the browser has to fetch it first. */
  readonly onDownload?: (loaded: number) => void;
  /** Further members of the options of `LanguageModel.create()`, such as `temperature`, `topK` or `expectedOutputs`. */
  readonly create?: Readonly<Record<string, unknown>>;
  /** Default: the global `LanguageModel`. */
  readonly languageModel?: PromptApi;
}

/**
 * The browser's own model (the Prompt API, `LanguageModel`) as the model of an agent. A request is a session of its own, so that the
 * conversation is the agent's. Tools are asked for by structured output, and run by the agent with its approvals; the API's own `tools` would
 * run inside the answer. Images and sounds are handed on; it counts no tokens.
 *
 * Where the model is to be downloaded first, the browser wants a click: run the agent in one, or create a session in one beforehand.
 */
export function promptApiModel(options: PromptApiOptions = {}): ModelFunction {
  async function* promptApi(
    request: ModelRequest,
    { signal }: { readonly signal: AbortSignal },
  ): AsyncGenerator<ModelChunk, void> {
    const structure = structureOf(request);
    const api = options.languageModel ?? (globalThis as { LanguageModel?: PromptApi }).LanguageModel;
    if (api === undefined) throw unavailable("this browser has no LanguageModel (the Prompt API)");
    const types = inputTypes(request.messages);
    const common = { ...options.create, ...(types.length > 1 && { expectedInputs: types.map((type) => ({ type })) }) };
    if ((await api.availability(common)) === "unavailable")
      throw unavailable("the browser's model is not available on this device, or not for these inputs");
    const system = [request.instructions, structure?.instructions].filter((text) => text !== undefined).join("\n\n");
    const [before, last] = promptsOf(request.messages);
    let session: PromptApiSession | undefined;
    try {
      session = await api.create({
        ...common,
        initialPrompts: [...(system === "" ? [] : [{ role: "system", content: system }]), ...before],
        signal,
        monitor(monitor: EventTarget) {
          monitor.addEventListener("downloadprogress", (event) =>
            options.onDownload?.((event as Event & { loaded: number }).loaded),
          );
        },
      });
      const stream = session.promptStreaming(last, {
        signal,
        ...(structure !== undefined && { responseConstraint: structure.schema, omitResponseConstraintInput: true }),
      });
      yield* read(stream, structure === undefined || request.tools.length === 0 ? undefined : new StructureReader());
    } catch (thrown) {
      throw signal.aborted ? thrown : failureOf(thrown);
    } finally {
      session?.destroy();
    }
  }
  return promptApi;
}

async function* read(
  stream: ReadableStream<string>,
  structure: StructureReader | undefined,
): AsyncGenerator<ModelChunk, void> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const text = structure === undefined ? value : structure.push(value);
      if (text !== "") yield text;
    }
    if (structure !== undefined) yield* structure.end();
  } finally {
    await reader.cancel().catch(() => {});
  }
}

type Prompt = { readonly role: "user" | "assistant"; readonly content: unknown };

/** The conversation before the last thing said to the model, and that. */
function promptsOf(messages: readonly Message[]): [before: Prompt[], last: Prompt[]] {
  const prompts = messages.map((message): Prompt => {
    if (message.role === "assistant") return { role: "assistant", content: assistantText(message) };
    const content = message.role === "tool" ? resultText(message) : message.content.map(contentOf);
    return { role: "user", content };
  });
  return [prompts.slice(0, -1), prompts.slice(-1)];
}

function contentOf(part: TextPart | FilePart): unknown {
  if (part.type === "text") return { type: "text", value: part.text };
  const { type, mediaType, data, name = "a file" } = part;
  if (data === undefined || type === "file") return { type: "text", value: `(${name} cannot be read by this model)` };
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  return { type, value: type === "image" ? new Blob([bytes], { type: mediaType }) : bytes.buffer };
}

function inputTypes(messages: readonly Message[]): string[] {
  const types = new Set(["text"]);
  for (const { role, content } of messages) {
    if (role !== "user") continue;
    for (const part of content)
      if (part.type !== "text" && part.type !== "file" && part.data !== undefined) types.add(part.type);
  }
  return [...types];
}

function failureOf(thrown: unknown): unknown {
  if (CrabletError.is(thrown)) return thrown;
  const { name = "" } = (thrown ?? {}) as { readonly name?: string };
  if (name === "NotAllowedError")
    return unavailable(
      "the browser did not allow its model: where it has to be downloaded first, run the agent in a click",
    );
  const kind = KINDS[name];
  if (kind === undefined) return thrown;
  return new CrabletError({ kind, message: `the browser's model failed: ${messageOf(thrown)}` }, { cause: thrown });
}

const KINDS: Readonly<Record<string, ErrorKind>> = {
  QuotaExceededError: "context-overflow",
  NotSupportedError: "bad-request",
  SyntaxError: "bad-request",
  NetworkError: "network",
  NotReadableError: "content-filter",
  UnknownError: "server",
  OperationError: "server",
};

/**
 * It does not come by waiting: asking for a wait that is longer than any run allows leaves it to `fallbackModels` at once.
 */
function unavailable(message: string): CrabletError {
  return new CrabletError({ kind: "overloaded", message, retryAfterMs: 24 * 3_600_000 });
}
