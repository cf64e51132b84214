// Child processes that never outlive the test that started them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";

/** The most output kept of one process, in UTF-16 units: enough for a failing test's report. */
const MAX_OUTPUT = 1_000_000;

/** How long a server may take until it says that it is ready, in milliseconds. */
const READY_TIMEOUT = 20_000;

/** How long a process that is told to stop may take until it is killed, in milliseconds. */
const STOP_TIMEOUT = 3_000;

const running = new Set();

process.on("exit", () => {
  for (const child of running) signalGroup(child, "SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

/**
 * Runs a program to its end.
 *
 * @param {string} program
 * @param {string[]} args
 * @param {{ cwd?: string, env?: Record<string, string>, timeout?: number }} [options]
 * @returns {Promise<string>} what it printed
 * @throws when it exits with another code than 0, with its output
 */
export async function run(program, args, { timeout = 120_000, ...options } = {}) {
  const child = startChild(program, args, options);
  const timer = setTimeout(() => signalGroup(child.process, "SIGKILL"), timeout);
  try {
    const [code, signal] = await once(child.process, "close");
    if (code === 0) return child.output();
    const ending = signal ? `was ended by ${signal} (limit ${timeout / 1000} s)` : `exited with ${code}`;
    throw new Error(`${[program, ...args].join(" ")} ${ending}:\n${child.output()}`);
  } finally {
    clearTimeout(timer);
    signalGroup(child.process, "SIGKILL");
  }
}

/**
 * Starts a server and waits until its output matches `ready`.
 *
 * @param {string} program
 * @param {string[]} args
 * @param {{ ready: RegExp, cwd?: string, env?: Record<string, string>, controlFd?: boolean }} options with `controlFd` the
 *   output of file descriptor 3 is read as well
 * @returns {Promise<{ match: RegExpExecArray, output: () => string, stop: () => Promise<void>, kill: () => Promise<void>, signal: (name: string) => void, pid: number }>}
 *   `kill` gives it no time to do anything
 */
export async function startServer(program, args, { ready, ...options }) {
  const child = startChild(program, args, options);
  const stop = () => stopChild(child.process);
  const deadline = Date.now() + READY_TIMEOUT;
  while (Date.now() < deadline && child.process.exitCode === null) {
    const match = ready.exec(child.output());
    if (match) {
      const signal = (name) => signalGroup(child.process, name);
      const { pid } = child.process;
      return { match, output: child.output, stop, kill: () => killChild(child.process), signal, pid };
    }
    await Promise.race([child.changed(), new Promise((resolve) => setTimeout(resolve, 200))]);
  }
  await stop();
  throw new Error(`${program} did not become ready (${ready}):\n${child.output()}`);
}

/** A TCP port of the loopback interface that nobody listens on. */
export async function freePort() {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

function startChild(program, args, { cwd, env = {}, controlFd = false }) {
  const child = spawn(program, args, {
    cwd,
    // The test runner's own variables would change how a nested `node --test` reports.
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, ...env },
    stdio: ["ignore", "pipe", "pipe", ...(controlFd ? ["pipe"] : [])],
    detached: true,
  });
  running.add(child);
  let output = "";
  let notify = () => {};
  for (const stream of child.stdio.slice(1)) {
    stream.setEncoding("utf8").on("data", (text) => {
      output = (output + text).slice(-MAX_OUTPUT);
      notify();
    });
  }
  child.on("error", (error) => {
    output += `\n${error.message}`;
  });
  child.on("close", () => {
    running.delete(child);
    notify();
  });
  return {
    process: child,
    output: () => output,
    changed: () =>
      new Promise((resolve) => {
        notify = resolve;
      }),
  };
}

async function stopChild(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, "close");
  signalGroup(child, "SIGTERM");
  const timer = setTimeout(() => signalGroup(child, "SIGKILL"), STOP_TIMEOUT);
  await closed;
  clearTimeout(timer);
}

async function killChild(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, "close");
  signalGroup(child, "SIGKILL");
  await closed;
}

/** Signals the process and all that it started: it leads a group of its own. */
function signalGroup(child, signal) {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}
