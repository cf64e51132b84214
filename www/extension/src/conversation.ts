// The one conversation of the extension. It is in IndexedDB, so a worker that is stopped loses nothing of it.
import type { Agent, Session, SessionState } from "crablet";
import { indexedDbStore } from "crablet/stores";
import { agentOf, type Tools } from "./agent.js";
import { readSettings } from "./settings.js";

const ID = "side panel";

const store = indexedDbStore({ database: "conversations" });

interface Open {
  readonly agent: Agent<Tools>;
  readonly session: Session<Tools>;
}

/** Opens the conversation when it is made, and goes on with what was at work in it when the last worker was stopped. */
export class Conversation {
  readonly #changed: (state: SessionState) => void;
  #open: Promise<Open>;

  /** @param changed is told the state whenever it is another */
  constructor(changed: (state: SessionState) => void) {
    this.#changed = changed;
    this.#open = this.#begin();
    this.#open.catch(() => {});
  }

  async state(): Promise<SessionState> {
    return (await this.#open).session.getState();
  }

  async send(text: string): Promise<void> {
    (await this.#open).session.send(text);
  }

  async decide(callId: string, allow: boolean): Promise<void> {
    (await this.#open).session.approve(callId, allow);
  }

  async stop(): Promise<void> {
    (await this.#open).session.abort();
  }

  /** Tries again to go on with a run that failed to. */
  async resume(): Promise<void> {
    (await this.#open).session.resume();
  }

  /** Ends this conversation and begins another one. */
  async clear(): Promise<void> {
    await this.#end();
    await store.delete(ID);
    await this.#reopen();
  }

  /** Goes on with the settings as they are now. */
  async reload(): Promise<void> {
    await this.#end();
    await this.#reopen();
  }

  async #begin(): Promise<Open> {
    const agent = await agentOf(await readSettings());
    const session = await agent.open(ID, store);
    session.subscribe(() => this.#changed(session.getState()));
    session.resume();
    this.#changed(session.getState());
    return { agent, session };
  }

  async #end(): Promise<void> {
    const { agent, session } = await this.#open;
    session.abort();
    await agent.close();
  }

  async #reopen(): Promise<void> {
    this.#open = this.#begin();
    await this.#open;
  }
}
