// The demo as another program sees it: a process that prints lines, and can be stopped.
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { descendantsOf, stillRunning } from "./processes.mjs";

const script = join(dirname(fileURLToPath(import.meta.url)), "demo.mjs");

/** How long processes may take to go after their parent has, in milliseconds: the grace before a kill, twice. */
const GONE_LIMIT = 10_000;

export class Demo {
  #child;
  #exited;
  #waiting = new Set();
  /** Every line it has printed. */
  lines = [];

  /** Starts the demo and waits until it is ready. What it still has to build, it says. */
  static async start() {
    const demo = new Demo();
    await Promise.race([
      demo.line(/ready:/),
      demo.#exited.then((code) => {
        throw new Error(
          `the demo ended with exit code ${code} before it was ready:\n${demo.lines.slice(-15).join("\n")}`,
        );
      }),
    ]);
    return demo;
  }

  constructor() {
    this.#child = spawn(process.execPath, [script], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, MODEL_URL: "" },
    });
    this.#exited = new Promise((resolve) => this.#child.once("exit", resolve));
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        this.lines.push(line);
        if (line.startsWith("demo:") && !line.includes("#demo=")) console.log(`        ${line}`);
        for (const wake of this.#waiting) wake();
      });
    }
  }

  get pageAddress() {
    return this.#printed(/page\s+(http:\S+)/);
  }

  /** The servers that it hands to its page. */
  async servers() {
    const address = new URL(this.pageAddress);
    const response = await fetch(new URL(`demo-${address.hash.slice("#demo=".length)}.json`, address));
    const { servers } = await response.json();
    return servers;
  }

  /** The tokens among what it hands to its page. */
  async tokens() {
    const tokens = (await this.servers()).map(({ token }) => token).filter((token) => token !== undefined);
    if (tokens.length === 0) throw new Error("the demo hands no token to its page");
    return tokens;
  }

  get filesFolder() {
    return this.#printed(/over (\S+)/);
  }

  get modelUrl() {
    return this.#printed(/model\s+\S+ at (\S+)/);
  }

  get shimPid() {
    return Number(this.#printed(/shim\s+\S+, process (\d+)/));
  }

  /** Waits for a line printed from `from` on (default: since the start). */
  async line(pattern, from = 0) {
    for (;;) {
      const found = this.lines.slice(from).find((line) => pattern.test(line));
      if (found !== undefined) return found;
      await new Promise((resolve) => {
        const wake = () => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
      });
    }
  }

  /** Sends a signal and waits for the end; gives the exit code. */
  async stop(signal) {
    this.#child.kill(signal);
    return await this.#exited;
  }

  /** Ends it if it still runs. */
  async kill() {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.stop("SIGTERM");
  }

  /** Everything that runs because of it. */
  async processes() {
    return await descendantsOf(this.#child.pid);
  }

  #printed(pattern) {
    for (const line of this.lines) {
      const found = pattern.exec(line);
      if (found) return found[1];
    }
    throw new Error(`the demo printed no line like ${pattern}`);
  }
}

/** Waits until none of these processes runs; fails with the ones that stay. */
export async function expectGone(processes) {
  const deadline = Date.now() + GONE_LIMIT;
  for (;;) {
    const left = await stillRunning(processes);
    if (left.length === 0) return;
    if (Date.now() > deadline)
      throw new Error(`still running: ${left.map(({ pid, command }) => `${pid} ${command}`).join("; ")}`);
    await sleep(100);
  }
}
