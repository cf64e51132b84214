// The conversation of the page: one session of the agent, and the transcript that its events make.
import { computed, signal } from "@preact/signals";
import {
  Agent,
  type AgentEvent,
  CrabletError,
  type Run,
  type Session,
  type SessionSnapshot,
  type TreeEntry,
} from "crablet";
import { modelOf, problemsOf } from "../connection/providers";
import { check, checkAll, configuredServers, connectionsAsked } from "../connection/servers";
import { asksBeforeTools, modelSettings, serverSettings } from "../connection/settings";
import { EMPTY_LOG, withLogged, type EventLog } from "../inspector/event-log";
import { infoOf } from "../ui/error-words";
import { EMPTY, textIn, withError, withEvent, withMessages, withUserMessage, type Transcript } from "./transcript";

const INSTRUCTIONS =
  "You are a helpful assistant in a web page. Use the tools you are offered when they help. Answer in Markdown.";

/** Kinds of error that may come from a tool server that is gone. */
const CONNECTION_ERRORS = new Set(["network", "timeout", "connection-closed", "session-expired"]);

export const transcript = signal<Transcript>(EMPTY);
export const eventLog = signal<EventLog>(EMPTY_LOG);
export const isRunning = signal(false);
/** Whether a loaded conversation stopped in the middle of a run, which can be taken up again. */
export const isInterrupted = signal(false);
export const isEmpty = computed(() => transcript.value.items.length === 0);

/** Every message of the session, and the one that the next prompt follows. As they were when nothing worked on it. */
export const tree = signal<{ readonly entries: readonly TreeEntry[]; readonly head: string | undefined }>({
  entries: [],
  head: undefined,
});
/** The conversation that a fork left, or the fork when the user went back. Never more than one. */
export const otherConversation = signal<SessionSnapshot | undefined>(undefined);

/** The newest transcript and log; the signals follow them once per frame, so that a fast stream does not render more often than the screen shows. */
let current: Transcript = EMPTY;
let currentLog: EventLog = EMPTY_LOG;
let isFlushDue = false;

/** The agent and the settings it was made of. A conversation may go on with another one. */
let agent: { readonly settings: string; readonly agent: Agent } | undefined;
let session: { readonly settings: string; readonly session: Session } | undefined;
let saved: SessionSnapshot | undefined;
let run: Run | undefined;

/** Sends a message: as a new prompt; into the run that is working, to steer it; or to be worked on after that. */
export function send(text: string, whileRunning: "steer" | "follow-up" = "steer"): void {
  if (run) {
    add(run, text, whileRunning);
    return;
  }
  if (isRunning.value) return;
  update(withUserMessage(current, text, "prompt"));
  void work((session) => session.send(text));
}

/**
 * Sends a prompt for somebody else than the user, and gives the text that answers it.
 *
 * @throws CrabletError `busy` while a run works, and what made the run fail.
 */
export async function ask(text: string, signal: AbortSignal): Promise<string> {
  if (isRunning.value)
    throw new CrabletError({ kind: "busy", message: "The agent of this page is working: ask later." });
  signal.addEventListener("abort", abort, { once: true });
  try {
    update(withUserMessage(current, text, "prompt"));
    const from = current.items.length;
    await work((session) => session.send(text));
    const items = current.items.slice(from);
    const failed = items.findLast((item) => item.kind === "error");
    if (failed) throw new CrabletError(failed.error);
    return textIn(items);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** Takes up the run that a loaded conversation stopped in. */
export function resume(): void {
  void work((session) => session.resume());
}

/** Sends the last prompt once more. */
export function retry(): void {
  const last = current.items.findLast((item) => item.kind === "user");
  if (last && !run) send(last.text);
}

/** Stops the run that is working. */
export function abort(): void {
  run?.abort();
}

/** Answers whether a call that waits for a person may run. */
export function decide(callId: string, allow: boolean): void {
  run?.approve(callId, allow);
}

/** Forgets the conversation and begins a new one. */
export function reset(): void {
  replace(undefined, EMPTY);
}

/** The conversation as a value to be saved: the messages and what is open, never a key or a token. */
export function save(): SessionSnapshot {
  return session?.session.toJSON() ?? saved ?? { version: 1 };
}

/**
 * Goes on with a saved conversation.
 *
 * @throws CrabletError `invalid-input` when this is not one.
 */
export async function load(snapshot: SessionSnapshot): Promise<void> {
  const loaded = (await agentForSettings()).agent.session(snapshot);
  const { messages, status } = loaded.getState();
  replace(snapshot, withMessages(EMPTY, messages));
  isInterrupted.value = status === "interrupted";
  showTree(loaded);
}

/**
 * Goes to another place of the session: the next prompt follows this message.
 *
 * @throws CrabletError `busy` while a run is not finished, `invalid-input` when no conversation can go on there.
 */
export async function goTo(messageId: string): Promise<void> {
  const session = await sessionForSettings();
  await session.seek(messageId);
  update(withMessages(EMPTY, session.getState().messages));
  showTree(session);
}

/**
 * Begins another conversation with the messages up to this one. The one that is left can be gone back to.
 *
 * @throws CrabletError `invalid-input` when no conversation can go on there.
 */
export async function forkAt(messageId: string): Promise<void> {
  const session = await sessionForSettings();
  await loadBeside(session.fork(messageId), session.toJSON());
}

/** Goes to the conversation that a fork left, or back to the fork. */
export async function swapConversations(): Promise<void> {
  if (otherConversation.value) await loadBeside(otherConversation.value, save());
}

async function loadBeside(snapshot: SessionSnapshot, left: SessionSnapshot): Promise<void> {
  await load(snapshot);
  otherConversation.value = left;
}

function showTree(session: Session): void {
  tree.value = { entries: session.tree(), head: session.getState().messages.at(-1)?.id };
}

function replace(snapshot: SessionSnapshot | undefined, next: Transcript): void {
  run?.abort();
  session = undefined;
  saved = snapshot;
  isInterrupted.value = false;
  tree.value = { entries: [], head: undefined };
  otherConversation.value = undefined;
  currentLog = EMPTY_LOG;
  update(next);
}

function add(run: Run, text: string, via: "steer" | "follow-up"): void {
  update(withUserMessage(current, text, via));
  try {
    if (via === "steer") run.steer(text);
    else run.followUp(text);
  } catch (error) {
    update(withError(current, infoOf(error), performance.now()));
  }
}

async function work(begin: (session: Session) => Run | undefined): Promise<void> {
  isRunning.value = true;
  isInterrupted.value = false;
  const problem = Object.values(problemsOf(modelSettings.value))[0];
  try {
    if (problem) throw new CrabletError({ kind: "invalid-input", message: problem });
    run = begin(await sessionForSettings());
    for await (const event of run ?? []) take(event);
  } catch (error) {
    const info = infoOf(error);
    update(withError(current, info, performance.now()));
    if (CONNECTION_ERRORS.has(info.kind)) checkAll();
  } finally {
    run = undefined;
    isRunning.value = false;
    if (session) showTree(session.session);
  }
}

/** The session, on an agent of the settings as they are now. */
async function sessionForSettings(): Promise<Session> {
  const { agent, settings } = await agentForSettings();
  if (session?.settings !== settings) session = { settings, session: agent.session(save()) };
  return session.session;
}

async function agentForSettings(): Promise<{ readonly settings: string; readonly agent: Agent }> {
  const settings = JSON.stringify([modelSettings.value, serverSettings.value, connectionsAsked.value]);
  if (agent?.settings !== settings) {
    const previous = agent;
    agent = {
      settings,
      agent: new Agent({
        model: modelOf(modelSettings.value),
        instructions: INSTRUCTIONS,
        mcpServers: configuredServers(),
        beforeToolCall: () => (asksBeforeTools.value ? { action: "ask" } : undefined),
      }),
    };
    saved = save();
    session = undefined;
    await previous?.agent.close();
  }
  return agent;
}

function take(event: AgentEvent): void {
  const now = performance.now();
  currentLog = withLogged(currentLog, event, now);
  update(withEvent(current, event, now));
  if (event.type === "tool-result" && event.isError) checkServerOf(event.callId);
}

function checkServerOf(callId: string): void {
  const tool = current.items.findLast((item) => item.kind === "tool" && item.callId === callId);
  if (tool?.kind === "tool" && tool.server !== undefined) void check(tool.server);
}

function update(next: Transcript): void {
  current = next;
  if (isFlushDue) return;
  isFlushDue = true;
  // A hidden page gets no frames, and needs none that are on time.
  if (document.hidden) setTimeout(flush);
  else requestAnimationFrame(flush);
}

function flush(): void {
  isFlushDue = false;
  transcript.value = current;
  eventLog.value = currentLog;
}
