// The panel's way to the service worker, which may be stopped and started at any time.
import { PORT, type Reply, type Request, type Shown } from "../messages.js";

/** How often a worker that shows nothing is connected to again before the panel gives up. */
const MAX_ATTEMPTS = 5;

/** In milliseconds, times the number of the attempt. */
const ATTEMPT_DELAY = 200;

export class Connection {
  readonly #shown: (shown: Shown) => void;
  readonly #isAtWork: () => boolean;
  #port: chrome.runtime.Port | undefined;
  /** Connections since the worker showed something. */
  #attempts = 0;

  /**
   * @param shown is told what the worker shows
   * @param isAtWork says whether a worker that is gone is started again. An idle one may rest: the next request starts it.
   */
  constructor(shown: (shown: Shown) => void, isAtWork: () => boolean) {
    this.#shown = shown;
    this.#isAtWork = isAtWork;
    this.#connect();
  }

  /** Resolves when the worker has done what it was asked; rejects with why it did not. */
  async ask(request: Request): Promise<void> {
    this.#attempts = 0;
    if (this.#port === undefined) this.#connect();
    const reply: Reply | undefined = await chrome.runtime.sendMessage(request);
    if (reply === undefined) throw new Error("The extension was stopped just then: try again.");
    if ("failure" in reply) throw new Error(reply.failure);
  }

  #connect(): void {
    this.#attempts += 1;
    const port = chrome.runtime.connect({ name: PORT });
    this.#port = port;
    port.onMessage.addListener((shown: Shown) => {
      this.#attempts = 0;
      this.#shown(shown);
    });
    port.onDisconnect.addListener(() => {
      this.#port = undefined;
      if (!this.#isAtWork() || this.#attempts >= MAX_ATTEMPTS) return;
      if (this.#attempts === 0) this.#connect();
      else setTimeout(() => this.#port ?? this.#connect(), ATTEMPT_DELAY * this.#attempts);
    });
  }
}
