// A Chromium in which nothing is watched but what the test asks for. A service worker that a debugger is attached to is never
// stopped, and the drivers of browsers attach to all of them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findChromium, QUIET } from "../../www/demo/chromium.mjs";

/** How long anything that is waited for may take, in milliseconds: four times what a service worker takes to go. */
const LIMIT = 120_000;

/**
 * Starts it with an extension.
 *
 * @template T
 * @param {string} extension its folder
 * @param {(browser: BareChromium) => Promise<T>} use
 * @returns {Promise<T>}
 */
export async function withBareChromium(extension, use) {
  const profile = await mkdtemp(join(tmpdir(), "crablet-chromium-"));
  const args = [
    ...QUIET,
    "--headless",
    "--remote-debugging-pipe",
    `--user-data-dir=${profile}`,
    `--disable-extensions-except=${extension}`,
    `--load-extension=${extension}`,
    ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
  ];
  const child = spawn(findChromium(), args, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const browser = new BareChromium(child.stdio[3], child.stdio[4]);
  try {
    await browser.send("Target.setDiscoverTargets", { discover: true });
    return await use(browser);
  } finally {
    const closed = once(child, "close");
    child.kill("SIGKILL");
    await closed;
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The DevTools protocol over a pipe: messages of JSON, each ended by a zero byte. */
class BareChromium {
  #requests;
  #last = 0;
  #waiting = new Map();
  #targets = new Map();
  #loaded = new Set();
  #watchers = new Set();

  constructor(requests, answers) {
    this.#requests = requests;
    let rest = "";
    answers.setEncoding("utf8").on("data", (text) => {
      const messages = (rest + text).split("\0");
      rest = messages.pop();
      for (const message of messages) this.#receive(JSON.parse(message));
    });
  }

  /** Sends a command, to a page where a session is named. */
  send(method, params = {}, sessionId = undefined) {
    this.#last += 1;
    const id = this.#last;
    this.#requests.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  /** The address of the service worker, once there is one. */
  worker() {
    return this.#until("a service worker", () => this.#workers()[0]?.url);
  }

  /** Resolves once no service worker is running. */
  noWorker() {
    return this.#until("the end of the service worker", () => this.#workers().length === 0 || undefined);
  }

  /** Opens a page, and gives what evaluates an expression in it. */
  async open(url) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    await this.send("Page.enable", {}, sessionId);
    await this.send("Page.navigate", { url }, sessionId);
    const evaluate = async (expression) => {
      const given = { expression, awaitPromise: true, returnByValue: true };
      const { result, exceptionDetails } = await this.send("Runtime.evaluate", given, sessionId);
      if (exceptionDetails !== undefined)
        throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
      return result.value;
    };
    // The empty page may have said just now that it was loaded.
    do await this.#until(`the page ${url}`, () => this.#loaded.delete(sessionId) || undefined);
    while ((await evaluate("location.href")) !== url);
    return evaluate;
  }

  #workers() {
    return [...this.#targets.values()].filter(({ type }) => type === "service_worker");
  }

  #until(what, look) {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`not within ${LIMIT / 1000} s: ${what}`)), LIMIT);
      const watch = () => {
        const found = look();
        if (found === undefined) return;
        clearTimeout(late);
        this.#watchers.delete(watch);
        resolve(found);
      };
      this.#watchers.add(watch);
      watch();
    });
  }

  #receive({ id, method, params, result, error, sessionId }) {
    if (id !== undefined) {
      const { resolve, reject } = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) resolve(result);
      else reject(new Error(error.message));
      return;
    }
    if (method === "Target.targetCreated") this.#targets.set(params.targetInfo.targetId, params.targetInfo);
    else if (method === "Target.targetDestroyed") this.#targets.delete(params.targetId);
    else if (method === "Page.loadEventFired") this.#loaded.add(sessionId);
    else return;
    for (const watch of [...this.#watchers]) watch();
  }
}
