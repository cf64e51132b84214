// The conversation of the page: one session of the agent, and the transcript that its events make.
import { computed, signal } from "@preact/signals";
import { Agent, CrabletError, type AgentEvent, type Run, type Session } from "crablet";
import { modelOf, problemsOf } from "../connection/providers";
import { configuredServers, infoOf } from "../connection/servers";
import { modelSettings } from "../connection/settings";
import { EMPTY_LOG, withLogged, type EventLog } from "../inspector/event-log";
import { EMPTY, withError, withEvent, withUserMessage, type Transcript } from "./transcript";

const INSTRUCTIONS = "You are a helpful assistant in a web page. Use the tools you are offered when they help. Answer in Markdown.";

export const transcript = signal<Transcript>(EMPTY);
export const isRunning = signal(false);
export const eventLog = signal<EventLog>(EMPTY_LOG);
export const isEmpty = computed(() => transcript.value.items.length === 0);

/** The newest transcript and log; the signals follow them once per frame, so that a fast stream does not render more often than the screen shows. */
let current: Transcript = EMPTY;
let currentLog: EventLog = EMPTY_LOG;
let isFlushDue = false;

let session: Session | undefined;
let agent: Agent | undefined;
let run: Run | undefined;

/** Sends a message: as a new prompt, or into the run that is working. */
export function send(text: string): void {
  if (run) {
    update(withUserMessage(current, text, true));
    run.steer(text);
    return;
  }
  update(withUserMessage(current, text, false));
  void work(text);
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

/** Forgets the conversation and begins a new one. */
export function reset(): void {
  run?.abort();
  session = undefined;
  currentLog = EMPTY_LOG;
  update(EMPTY);
}

async function work(text: string): Promise<void> {
  isRunning.value = true;
  const problem = Object.values(problemsOf(modelSettings.value))[0];
  try {
    if (problem) throw new CrabletError({ kind: "invalid-input", message: problem, retryable: false });
    const current = await sessionForSettings();
    run = current.send(text);
    for await (const event of run) take(event);
    await run.result;
  } catch (error) {
    if (!isAbort(error)) update(withError(current, infoOf(error), performance.now()));
  } finally {
    run = undefined;
    isRunning.value = false;
  }
}

/** The session, with an agent of the settings as they are now: a conversation may go on with another model or other servers. */
async function sessionForSettings(): Promise<Session> {
  const previous = agent;
  agent = new Agent({ model: modelOf(modelSettings.value), instructions: INSTRUCTIONS, mcpServers: configuredServers() });
  session = agent.session(session?.toJSON());
  await previous?.close();
  return session;
}

function take(event: AgentEvent): void {
  const now = performance.now();
  currentLog = withLogged(currentLog, event, now);
  update(withEvent(current, event, now));
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

function isAbort(error: unknown): boolean {
  return (CrabletError.is(error) && error.kind === "aborted") || (error instanceof DOMException && error.name === "AbortError");
}
