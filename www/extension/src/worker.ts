// The service worker. The conversation runs here, so it goes on while the panel is closed.
import { mcp, type Message, type SessionState } from "crablet";
import { Conversation } from "./conversation.js";
import { keepAlive } from "./keep-alive.js";
import { PORT, type Reply, type Request, type Shown } from "./messages.js";
import { closeStorage, readView, saveKey, savePairing, saveSettings } from "./settings.js";

/** The least milliseconds between two updates of a panel. */
const UPDATE_INTERVAL = 40;

/** The panels that are open (one a window), each with the messages that it has. */
const panels = new Map<chrome.runtime.Port, readonly Message[]>();

let latest: SessionState | undefined;
let updating: ReturnType<typeof setTimeout> | undefined;

const conversation = new Conversation((state) => {
  latest = state;
  keepAlive(state.status === "running");
  updating ??= setTimeout(update, UPDATE_INTERVAL);
});

// Listeners that are not there when the worker's script has run miss the event that started it.
chrome.runtime.onConnect.addListener((port) => {
  if (port.name !== PORT || !isOwnPage(port.sender)) return;
  panels.set(port, []);
  port.onDisconnect.addListener(() => panels.delete(port));
  void showSettings();
  conversation.state().then(
    (state) => show(port, state),
    (thrown) => show(port, { ...NOTHING, error: { kind: "storage", message: String(thrown), retryable: true } }),
  );
});
chrome.runtime.onMessage.addListener((request: Request, sender, reply: (reply: Reply) => void) => {
  if (!isOwnPage(sender)) return false;
  handle(request).then(
    () => {
      // A panel that is told that it is done knows what came of it, even if the worker is stopped now.
      update();
      reply({ done: true });
    },
    (thrown) => reply({ failure: thrown instanceof Error ? thrown.message : String(thrown) }),
  );
  return true;
});
chrome.action.onClicked.addListener(({ windowId }) => void chrome.sidePanel.open({ windowId }));
// That the worker runs is all these have to see to.
chrome.alarms.onAlarm.addListener(() => {});
chrome.runtime.onStartup.addListener(() => {});
void closeStorage();

async function handle(request: Request): Promise<void> {
  switch (request.type) {
    case "send":
      return conversation.send(request.text);
    case "decide":
      return conversation.decide(request.callId, request.allow);
    case "stop":
    case "resume":
    case "clear":
      return conversation[request.type]();
    case "save":
      await refuseWhileAtWork();
      await saveSettings(request.settings);
      if (request.key !== undefined) await saveKey(request.key, request.settings, request.remember);
      break;
    case "pair": {
      await refuseWhileAtWork();
      const { code, url } = request;
      await savePairing({ ...(await mcp.pairShim({ code, url })), url });
      break;
    }
    case "unpair":
      await refuseWhileAtWork();
      await savePairing(undefined);
  }
  await conversation.reload();
  await showSettings();
}

async function refuseWhileAtWork(): Promise<void> {
  const { status } = await conversation.state();
  if (status !== "idle" && status !== "error") throw new Error("A run is at work: wait for its end, or stop it.");
}

function update(): void {
  clearTimeout(updating);
  updating = undefined;
  for (const port of panels.keys()) if (latest !== undefined) show(port, latest);
}

function show(port: chrome.runtime.Port, { messages, ...state }: SessionState): void {
  const known = panels.get(port) ?? [];
  const changed = messages.findIndex((message, index) => message !== known[index]);
  const from = changed === -1 ? messages.length : changed;
  panels.set(port, messages);
  tell(port, { type: "session", from, messages: messages.slice(from), state });
}

async function showSettings(): Promise<void> {
  const settings = await readView();
  for (const port of panels.keys()) tell(port, { type: "settings", settings });
}

function tell(port: chrome.runtime.Port, shown: Shown): void {
  // A panel that was closed just now is told of no more.
  if (panels.has(port)) port.postMessage(shown);
}

/** Content scripts could connect too; this extension has none, and takes nothing from what is not its panel. */
function isOwnPage(sender: chrome.runtime.MessageSender | undefined): boolean {
  return sender?.url?.startsWith(chrome.runtime.getURL("")) === true;
}

const NOTHING: SessionState = {
  status: "interrupted",
  messages: [],
  streaming: undefined,
  pending: [],
  clientCalls: [],
  error: undefined,
};
