import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Starts a server that prints its address as its first line. Gives that, and a function that ends it. */
export async function startProgram(program, args) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((ended) => child.once("exit", ended));
  const url = await Promise.race([
    new Promise((read) => createInterface({ input: child.stdout }).once("line", read)),
    ended.then((code) => Promise.reject(new Error(`${program} exited with ${code}`))),
  ]);
  const stop = async () => {
    child.kill();
    await ended;
  };
  return { url, stop };
}
