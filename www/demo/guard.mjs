// Runs a command and never outlives the process that asked for it: when the pipe on standard input ends, however its other end died, the
// command is stopped, first kindly, then not.
//
//   node guard.mjs COMMAND [ARGUMENT…]
import { spawn } from "node:child_process";

/** How long a command may take to stop by itself, in milliseconds. */
const GRACE = 3_000;

const [command, ...parameters] = process.argv.slice(2);
const child = spawn(command, parameters, { stdio: ["ignore", "inherit", "inherit"], detached: true });

child.on("error", (error) => {
  console.error(`${command}: ${error.message}`);
  process.exit(127);
});
child.on("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));

// Everything that asks the guard to stop asks the command; Ctrl-C in a terminal reaches both the asker and the guard.
process.stdin.on("end", stop).on("error", stop).resume();
process.on("SIGTERM", stop);
process.on("SIGINT", stop);
process.on("SIGHUP", stop);

function stop() {
  signalGroup("SIGTERM");
  setTimeout(() => signalGroup("SIGKILL"), GRACE).unref();
}

function signalGroup(signal) {
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It is gone already.
  }
}
