import { CrabletError, messageOf } from "../error.js";
import type { ToolCall } from "../event.js";
import { abandon, isOpen } from "../open-session.js";
import type { RunOptions } from "../options.js";
import type { Run } from "../run.js";
import type { Session } from "../session.js";
import { type MaybePromise, toolOutput, type ToolSet } from "../tool.js";
import { answerId, type UIMessageStreamOptions } from "../ui-message-stream.js";
import {
  type ChatPost,
  MAX_POST_BYTES,
  objectOf,
  type PostedMessage,
  type PostedPart,
  promptOf,
  readChatPost,
  refusal,
} from "./chat-post.js";

/** How a post is answered. */
export interface AnswerOptions extends Pick<RunOptions, "signal" | "model" | "maxSteps"> {
  /**
   * What becomes of a post with an answer that the session did not give: `refuse` (default), or `ignore` for pages that show
   * messages of their own. Either way no answer is read from a post.
   */
  readonly unknownMessages?: "refuse" | "ignore";
}

/**
 * Goes on with a session as a client of the AI SDK asks for. The session is what was said: of the post only the last message is
 * read. As a user's message it is the prompt; an edited message, or one to be answered again, goes back to its place in the
 * session first. As an answer it decides about calls: an approval or an output counts for a call that waits in the session, with
 * the tool and the input that it waits with.
 *
 * A prompt that comes while calls wait ends them: they are told to the model as not run.
 *
 * @throws CrabletError with the `status` to answer with: 400 for a post that is not to be believed, 409 for one that does not fit
 *   what the session is at.
 */
export async function answerChat<T extends ToolSet>(
  session: Session<T>,
  post: ChatPost,
  { unknownMessages = "refuse", signal, model, maxSteps }: AnswerOptions = {},
): Promise<Run<T, unknown>> {
  const options: RunOptions = {
    ...(signal !== undefined && { signal }),
    ...(model !== undefined && { model }),
    ...(maxSteps !== undefined && { maxSteps }),
  };
  const last = check(session, post, unknownMessages);
  if (session.getState().status === "running") throw refusal(409, "this chat is being answered already");
  if (last.role === "assistant") return goOn(session, last, options);
  if (isOpen(session)) await abandon(session);
  const prompt = promptOf(last);
  if (post.trigger === "regenerate-message" || post.messageId !== undefined) await goBack(session, post);
  return session.send(prompt, options) as Run<T, unknown>;
}

/** What a chat handler is made of. */
export interface ChatHandlerOptions<T extends ToolSet> extends UIMessageStreamOptions, Omit<AnswerOptions, "signal"> {
  /**
   * The session of a chat. The client chooses the id, so look whether the chat is one of whoever asks; a `Response` is sent as
   * it is.
   */
  readonly session: (chatId: string, request: Request) => MaybePromise<Session<T> | Response>;
  /** The most bytes of a request. Default: 32 MiB. */
  readonly maxBytes?: number;
}

/**
 * A handler of HTTP requests for `useChat` and the other clients of the AI SDK. What cannot be answered is refused with a status
 * and a sentence; what `session` throws is thrown.
 */
export function chatHandler<T extends ToolSet>(
  options: ChatHandlerOptions<T>,
): (request: Request) => Promise<Response> {
  const { session: sessionOf, maxBytes = MAX_POST_BYTES, ...rest } = options;
  return async (request) => {
    try {
      if (request.method !== "POST") throw refusal(405, "a chat is posted");
      const post = await readChatPost(request, { maxBytes });
      const session = await sessionOf(post.id, request);
      if (session instanceof Response) return session;
      const run = await answerChat(session, post, { ...rest, signal: request.signal });
      return run.toUIMessageStreamResponse(rest);
    } catch (thrown) {
      const status = statusOf(thrown);
      if (status === undefined) throw thrown;
      return new Response(messageOf(thrown), { status, headers: { "content-type": "text/plain; charset=utf-8" } });
    }
  };
}

/**
 * Goes on with a run that its process left, for `useChat({ resume: true })`, which asks at `GET …/CHAT/stream`. Status 204 when
 * nothing is to be gone on with. Only for a session that no other process is at work with.
 */
export function resumeChat<T extends ToolSet>(
  session: Session<T>,
  options: UIMessageStreamOptions & Pick<AnswerOptions, "signal"> = {},
): Response {
  const run = session.resume(options.signal === undefined ? {} : { signal: options.signal });
  if (run === undefined) return new Response(null, { status: 204 });
  const prompt = session.getState().messages.findLast(isPrompt)?.id;
  return run.toUIMessageStreamResponse({ ...options, ...(prompt !== undefined && { messageId: answerId(prompt) }) });
}

/** The last message of a post that may be believed so far. */
function check(session: Session<any>, { messages }: ChatPost, unknown: "refuse" | "ignore"): PostedMessage {
  if (messages.some(({ role }) => role !== "user" && role !== "assistant"))
    throw refusal(400, "a post has messages of the user and answers, and no others");
  if (unknown === "refuse") {
    const prompts = [...session.getState().messages, ...session.tree().map(({ message }) => message)].filter(isPrompt);
    const known = new Set(prompts.map(({ id = "" }) => answerId(id)));
    if (messages.some(({ id, role }) => role === "assistant" && !known.has(id)))
      throw refusal(400, "the post has an answer that this chat did not give");
  }
  return messages.at(-1) as PostedMessage;
}

const isPrompt = ({ role, origin = "prompt" }: { readonly role: string; readonly origin?: string }): boolean =>
  role === "user" && origin === "prompt";

/** Decides about the calls that wait, as the posted answer says, and goes on. */
function goOn<T extends ToolSet>(session: Session<T>, { parts }: PostedMessage, options: RunOptions): Run<T, unknown> {
  const decisions = parts.filter(isCall).flatMap((part) => decisionOf(session, part));
  if (decisions.length === 0) throw refusal(409, "nothing waits in this chat for what was posted");
  for (const decide of decisions) decide();
  const run = session.resume(options);
  if (run === undefined) throw refusal(409, "nothing waits in this chat");
  return run as Run<T, unknown>;
}

type CallPart = PostedPart & { readonly toolCallId: string; readonly state: string };

const isCall = (part: PostedPart): part is CallPart =>
  (part.type.startsWith("tool-") || part.type === "dynamic-tool") &&
  typeof part.toolCallId === "string" &&
  typeof part.state === "string";

/** What a posted call decides, if it is one that waits. */
function decisionOf(session: Session<any>, part: CallPart): (() => void)[] {
  const { pending, clientCalls } = session.getState();
  const { toolCallId: id, state } = part;
  const isAt = (call: ToolCall): boolean => call.callId === id;
  const approvable = pending.find(isAt);
  const performable = clientCalls.find(isAt);
  if (approvable !== undefined) {
    if (state === "approval-requested") return [];
    const { id: approvalId, approved, reason } = objectOf(part.approval);
    if (
      state !== "approval-responded" ||
      approvalId !== id ||
      typeof approved !== "boolean" ||
      !isSame(approvable, part)
    )
      throw refusal(400, `the post does not answer what was asked about the call ${id}`);
    return [() => session.approve(id, approved, typeof reason === "string" ? reason : undefined)];
  }
  if (performable !== undefined) {
    if (state === "output-available" && part.preliminary !== true && isSame(performable, part))
      return [() => session.toolResult(id, part.output ?? null)];
    if (state === "output-error" && isSame(performable, part))
      return [() => session.toolResult(id, toolOutput({ content: String(part.errorText), isError: true }))];
    if (state === "input-available") return [];
    throw refusal(400, `the post does not give the result of the call ${id}`);
  }
  if (!isKnown(session, part)) throw refusal(400, `the call ${id} is none of this chat`);
  if (state === "approval-responded") throw refusal(409, `the call ${id} does not wait for an approval any more`);
  return [];
}

/** Whether a posted call has the tool and the input of one that waits. */
function isSame(call: ToolCall, part: CallPart): boolean {
  const toolName = part.type === "dynamic-tool" ? part.toolName : part.type.slice("tool-".length);
  return toolName === call.toolName && canonical(part.input) === canonical(call.input);
}

/** Whether a call was made in this session, or within one that was. */
function isKnown(session: Session<any>, part: CallPart): boolean {
  const { messages, streaming } = session.getState();
  const { within } = objectOf(objectOf(part.callProviderMetadata).crablet);
  const ids = [part.toolCallId, within];
  // A call that was cut off is shown and not kept.
  if (part.state === "input-streaming") return true;
  return [...messages, ...(streaming === undefined ? [] : [streaming])].some(
    ({ role, content }) =>
      role === "assistant" && content.some((known) => known.type === "tool-call" && ids.includes(known.callId)),
  );
}

/** JSON text that is equal for equal values, whatever the order of members. */
function canonical(value: unknown): string {
  return (
    JSON.stringify(value, (_, member: unknown) =>
      typeof member === "object" && member !== null && !Array.isArray(member)
        ? Object.fromEntries(Object.entries(member).sort(([one], [other]) => (one < other ? -1 : 1)))
        : member,
    ) ?? ""
  );
}

/** Goes to the place of the last posted message in the session, so that it is said anew. */
async function goBack(session: Session<any>, post: ChatPost): Promise<void> {
  const prompts = session.getState().messages.filter(isPrompt);
  const prompt = prompts[placeOf(post, prompts)];
  // The message is new to the session: it was not received before.
  if (prompt === undefined) return;
  await session.seek(session.tree().find(({ message }) => message.id === prompt.id)?.parentId);
}

/**
 * Which of the session's prompts the last posted message is. Its answer says so, or the answer before it: those have ids of the session.
 * A client may post the last message alone; then it is the last one, where it asks for another answer.
 */
function placeOf({ messages, messageId, trigger }: ChatPost, prompts: readonly { readonly id?: string }[]): number {
  const named = prompts.findIndex(({ id = "" }) => id === messageId || answerId(id) === messageId);
  if (named >= 0) return named;
  const at = messages.findLastIndex(({ id: posted }) => prompts.some(({ id = "" }) => answerId(id) === posted));
  const users = messages.slice(at + 1).filter(({ role }) => role === "user").length;
  if (at >= 0) return prompts.findIndex(({ id = "" }) => answerId(id) === messages[at]?.id) + users;
  if (messages.length === 1 && trigger === "regenerate-message") return prompts.length - 1;
  return users - 1;
}

/** The status that says what is wrong with a post; `undefined` when it is not the post's fault. */
function statusOf(thrown: unknown): number | undefined {
  if (!CrabletError.is(thrown)) return undefined;
  if (thrown.kind === "busy") return 409;
  return thrown.kind === "invalid-input" || thrown.kind === "conflict" ? thrown.status : undefined;
}
