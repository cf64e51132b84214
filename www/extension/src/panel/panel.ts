// The side panel: shows what the worker says and asks it for what the user wants. It holds no state of its own.
import type { SessionState, SessionStatus } from "crablet";
import type { Request } from "../messages.js";
import { Approvals } from "./approvals.js";
import { Connection } from "./connection.js";
import { byId } from "./elements.js";
import { SettingsForm } from "./settings-form.js";
import { Transcript } from "./transcript.js";

const STATUS: Readonly<Record<SessionStatus, string>> = {
  idle: "",
  running: "Working…",
  "awaiting-approval": "Waiting for your decision.",
  "awaiting-result": "Waiting for a result.",
  interrupted: "Stopped in the middle.",
  error: "",
};

const prompt = byId<HTMLTextAreaElement>("prompt");
let status: SessionStatus = "idle";
/** Whether the worker has something to do, and is started again when it is stopped. */
let isAtWork = true;

const transcript = new Transcript();
const approvals = new Approvals((callId, allow) => void ask({ type: "decide", callId, allow }));
const settings = new SettingsForm(ask);
const connection = new Connection(
  (shown) => {
    if (shown.type === "settings") return settings.show(shown.settings);
    transcript.show(shown.from, shown.messages, shown.state.streaming);
    approvals.show(shown.state.pending);
    showState(shown.state);
  },
  () => isAtWork,
);

function showState(state: Omit<SessionState, "messages">): void {
  status = state.status;
  isAtWork = goesOn(state);
  const isOpen = status === "running" || status.startsWith("awaiting");
  byId("status").textContent = STATUS[status];
  byId("send").hidden = isOpen;
  byId("stop").hidden = !isOpen;
  byId("again").hidden = status !== "interrupted";
  byId("transcript").setAttribute("aria-busy", String(status === "running"));
  showProblem(state.error?.message);
}

/** What failed or waits for the user rests; a decision that was made does not. */
function goesOn({ status, pending, error }: Omit<SessionState, "messages">): boolean {
  if (status === "interrupted") return error === undefined;
  return status === "running" || (status.startsWith("awaiting") && pending.length === 0);
}

function showProblem(message: string | undefined): void {
  byId("problem").hidden = message === undefined;
  byId("problem-text").textContent = message ?? "";
}

async function ask(request: Request): Promise<boolean> {
  try {
    await connection.ask(request);
    isAtWork = true;
    showProblem(undefined);
    return true;
  } catch (error) {
    showProblem(error instanceof Error ? error.message : String(error));
    return false;
  }
}

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  void send();
});
prompt.addEventListener("keydown", (event) => {
  // While an input method composes a word, Enter is its own.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  void send();
});
byId("stop").addEventListener("click", () => void ask({ type: "stop" }));
byId("again").addEventListener("click", () => void ask({ type: "resume" }));
byId("clear").addEventListener("click", () => void ask({ type: "clear" }));

async function send(): Promise<void> {
  const text = prompt.value.trim();
  if (text === "" || byId("send").hidden) return;
  // What was typed stays until the worker has taken it.
  if (await ask({ type: "send", text })) prompt.value = "";
}
