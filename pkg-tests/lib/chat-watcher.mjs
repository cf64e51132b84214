// Watches conversations of the example worker from a page of it, as its own page does, and keeps what was told.

/** How long anything that is waited for may take, in milliseconds. */
const LIMIT = 60_000;

/**
 * @param {import("playwright-core").Page} tab a page of the worker
 */
export async function watcherOf(tab) {
  await tab.evaluate(() => {
    globalThis.chats = new Map();
    globalThis.watchChat = (name) => {
      const chat = { messages: [], state: undefined, updates: [], opened: 0, look: () => {} };
      globalThis.chats.set(name, chat);
      const connect = () => {
        const url = new URL(`/chats/${name}?have=${chat.messages.length}`, location.href.replace(/^http/, "ws"));
        chat.socket = new WebSocket(url);
        chat.socket.addEventListener("open", () => {
          chat.opened += 1;
        });
        chat.socket.addEventListener("close", () => {
          // Not known until it is connected again.
          chat.state = undefined;
          setTimeout(connect, 50);
        });
        chat.socket.addEventListener("message", ({ data }) => {
          const update = JSON.parse(data);
          chat.updates.push(update);
          if (update.more !== undefined) chat.state.streaming.content.at(-1).text += update.more;
          else if (update.from !== undefined) {
            chat.messages = [...chat.messages.slice(0, update.from), ...update.messages];
            chat.state = update.state;
          }
          chat.look();
        });
      };
      connect();
    };
  });
  return {
    /** Begins to watch. */
    watch: (name) => tab.evaluate((chat) => globalThis.watchChat(chat), name),
    /** Sends a request. */
    ask: (name, request) =>
      tab.evaluate(([chat, text]) => globalThis.chats.get(chat).socket.send(text), [name, JSON.stringify(request)]),
    /** All that was told, and what it makes. */
    seen: (name) =>
      tab.evaluate((chat) => {
        const { messages, state, updates, opened } = globalThis.chats.get(chat);
        return { messages, state, updates, opened };
      }, name),
    /** Resolves when the state has this status, or with `pending` questions, with the text of its last message, or was opened so often. */
    until: (name, wanted) =>
      tab.evaluate(
        ([chatName, { status, pending, text, opened }, limit]) =>
          new Promise((resolve, reject) => {
            const chat = globalThis.chats.get(chatName);
            const textOf = (message) => message?.content.map((part) => part.text ?? "").join("");
            chat.look = () => {
              const { state, messages } = chat;
              if (state === undefined) return;
              if (status !== undefined && state.status !== status) return;
              if (pending !== undefined && state.pending.length !== pending) return;
              if (text !== undefined && !textOf(messages.at(-1))?.includes(text)) return;
              if (opened !== undefined && chat.opened < opened) return;
              clearTimeout(late);
              resolve();
            };
            const late = setTimeout(() => {
              const wants = JSON.stringify({ status, pending, text, opened });
              reject(new Error(`${chatName} did not become ${wants}: ${JSON.stringify(chat.updates.slice(-5))}`));
            }, limit);
            chat.look();
          }),
        [name, wanted, LIMIT],
      ),
  };
}
