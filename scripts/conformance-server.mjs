// The way of the official conformance suite to our server: the example `conformance_server` as the stdio child of
// `crablet-shim serve`, and a relay in front of it.
//
// The suite sends no token, and the shim lets nobody in without one. The relay adds it and changes nothing else but its own
// address in `Host`, so that what the suite sees is what the shim answers: there is no way to switch the check off.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The name of the server in the shim's configuration. */
const NAME = "conformance";

const HOST = "127.0.0.1";

/**
 * Starts server, shim and relay. `built` is the folder of cargo's debug build, `command` the server's program and arguments.
 * Gives the address for the suite and a function that ends everything.
 */
export async function startServer(built, command) {
  const shimProgram = join(built, "crablet-shim");
  const folder = mkdtempSync(join(tmpdir(), "crablet-conformance-"));
  const config = join(folder, "servers.json");
  writeFileSync(config, JSON.stringify({ mcpServers: { [NAME]: { command: command[0], args: command.slice(1) } } }));
  const env = { ...process.env, CRABLET_STATE_DIR: join(folder, "state") };
  const grant = (...client) =>
    String(
      execFileSync(shimProgram, ["grant", "--http", "--server", NAME, ...client], {
        env,
        stdio: ["ignore", "pipe", "ignore"],
      }),
    ).trim();

  const relay = createServer();
  await new Promise((listening) => relay.listen(0, HOST, listening));
  const authority = `${HOST}:${relay.address().port}`;
  const tokens = { native: grant("--native"), page: grant("--origin", `http://${authority}`) };

  const shim = spawn(shimProgram, ["serve", "--config", config, "--port", "0"], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said] = await Promise.race([
    new Promise((read) => createInterface({ input: shim.stdout }).once("line", (line) => read([line]))),
    new Promise((_, fail) => shim.once("exit", (code) => fail(new Error(`crablet-shim exited with ${code}`)))),
  ]);
  const port = Number(/127\.0\.0\.1:(\d+)/.exec(said)[1]);

  relay.on("request", (incoming, response) => {
    const headers = { ...incoming.headers };
    if (headers.host === authority) headers.host = `${HOST}:${port}`;
    headers.authorization = `Bearer ${headers.origin === undefined ? tokens.native : tokens.page}`;
    const { method, url: path } = incoming;
    const outgoing = request({ host: HOST, port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
    });
    outgoing.on("error", () => response.destroy());
    // Who closes a stream means it.
    response.on("close", () => outgoing.destroy());
    incoming.pipe(outgoing);
  });

  const stop = async () => {
    relay.close();
    relay.closeAllConnections();
    if (shim.exitCode === null) {
      const ended = new Promise((ended) => shim.once("exit", ended));
      shim.kill("SIGTERM");
      await ended;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  return { url: `http://${authority}/mcp/${NAME}`, stop };
}
