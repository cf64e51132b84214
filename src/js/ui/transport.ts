import type { Session } from "../session.js";
import type { MaybePromise, ToolSet } from "../tool.js";
import type { UIMessageChunk, UIMessageStreamOptions } from "../ui-message-stream.js";
import { answerChat, type AnswerOptions } from "./answer.js";
import { chatPostOf } from "./chat-post.js";

/** What `useChat` sends a transport, as far as it is looked at. */
export interface ChatTransportRequest {
  readonly chatId: string;
  readonly messages: readonly unknown[];
  readonly trigger?: string;
  readonly messageId?: string | undefined;
  readonly abortSignal?: AbortSignal | undefined;
}

/**
 * A transport for `useChat` of which the agent runs in the page itself: `useChat({ transport: new SessionTransport({ session }) })`.
 * Each chat is one session.
 */
export class SessionTransport<T extends ToolSet = ToolSet> {
  readonly #session: (chatId: string) => MaybePromise<Session<T>>;
  readonly #options: UIMessageStreamOptions & AnswerOptions;

  /** Answers from one session, or from the session that a function gives for the id of a chat. */
  constructor({
    session,
    ...options
  }: {
    readonly session: Session<T> | ((chatId: string) => MaybePromise<Session<T>>);
  } & UIMessageStreamOptions &
    Omit<AnswerOptions, "signal">) {
    this.#session = typeof session === "function" ? session : () => session;
    this.#options = options;
  }

  /** Answers the last message, or goes on with what was decided. */
  async sendMessages(request: ChatTransportRequest): Promise<ReadableStream<UIMessageChunk>> {
    const { chatId, messages, trigger, messageId, abortSignal } = request;
    const session = await this.#session(chatId);
    const run = await answerChat(session, chatPostOf({ id: chatId, messages, trigger, messageId }), {
      ...this.#options,
      ...(abortSignal !== undefined && { signal: abortSignal }),
    });
    return run.toUIMessageStream(this.#options);
  }

  /** There is nothing to reconnect to: the page that ran the agent is this one. */
  reconnectToStream(): Promise<null> {
    return Promise.resolve(null);
  }
}
