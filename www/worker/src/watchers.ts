// The browsers that watch a conversation, over WebSockets that outlive the object's own life in memory.
import type { AssistantMessage, Message, SessionState } from "crablet";

/** What the browsers are shown. */
export type View = SessionState & {
  /** Whether a browser works on it. */
  readonly isLent: boolean;
};

/** What a browser is told: the messages from a place on with all that is not a message, or what a text has grown by. */
export type Update =
  | { readonly from: number; readonly messages: readonly Message[]; readonly state: Omit<View, "messages"> }
  | { readonly more: string }
  | { readonly failure: string };

/** The most browsers that watch one conversation. */
const MAX_WATCHERS = 50;

/**
 * How many of its last messages a browser is told again when it continues: those of a step that were shown and not yet saved
 * when the object was killed may have become others.
 */
const OVERLAP = 4;

export class Watchers {
  readonly #state: DurableObjectState;
  /** What those who are `#current` have been shown. */
  #shown: View | undefined;
  /** Who has been told something in this life of the object. The others have what their attachment says. */
  readonly #current = new WeakSet<WebSocket>();

  constructor(state: DurableObjectState) {
    this.#state = state;
  }

  get count(): number {
    return this.#state.getWebSockets().length;
  }

  /** Lets a browser watch that has so many messages already. */
  accept(have: number, view: View): Response {
    if (this.count >= MAX_WATCHERS) return new Response("Too many watch this.", { status: 503 });
    const { 0: client, 1: server } = new WebSocketPair();
    this.#state.acceptWebSocket(server);
    server.serializeAttachment(have);
    this.show(view);
    return new Response(null, { status: 101, webSocket: client });
  }

  /** Tells each browser what it does not have. */
  show(view: View): void {
    const changes = this.#shown === undefined ? undefined : text(since(this.#shown, view));
    this.#shown = view;
    for (const socket of this.#state.getWebSockets()) {
      if (socket.readyState !== WebSocket.OPEN) continue;
      const isCurrent = this.#current.has(socket);
      const have = Number(socket.deserializeAttachment());
      socket.send((isCurrent && changes) || text(from(Math.max(0, have - OVERLAP), view)));
      this.#current.add(socket);
      if (have !== view.messages.length) socket.serializeAttachment(view.messages.length);
    }
  }

  /** Ends all WebSockets, so that the browsers come again. */
  sendAway(reason: string): void {
    for (const socket of this.#state.getWebSockets()) socket.close(1012, reason);
  }
}

const text = (update: Update): string => JSON.stringify(update);

function from(place: number, { messages, ...state }: View): Update {
  const first = Math.min(place, messages.length);
  return { from: first, messages: messages.slice(first), state };
}

function since(before: View, view: View): Update {
  const changed = view.messages.findIndex((message, index) => message !== before.messages[index]);
  const isSame = before.messages === view.messages && before.status === view.status && before.pending === view.pending;
  const more = isSame && before.isLent === view.isLent ? growth(before.streaming, view.streaming) : undefined;
  return more === undefined ? from(changed === -1 ? view.messages.length : changed, view) : { more };
}

/** What the text of a message has grown by, when that is all. */
function growth(before: AssistantMessage | undefined, now: AssistantMessage | undefined): string | undefined {
  const [was, is] = [before?.content.at(-1), now?.content.at(-1)];
  if (was?.type !== "text" || is?.type !== "text" || before?.content.length !== now?.content.length) return undefined;
  return is.text.startsWith(was.text) ? is.text.slice(was.text.length) : undefined;
}
