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
 * Starts the shim with one server. `program` is crablet-shim, `command` the server's program and arguments. Gives the address of
 * its HTTP front, a function that makes a token for it, and one that ends everything.
 */
export async function startShim(program, command) {
  const folder = mkdtempSync(join(tmpdir(), "crablet-conformance-"));
  const config = join(folder, "servers.json");
  writeFileSync(config, JSON.stringify({ mcpServers: { [NAME]: { command: command[0], args: command.slice(1) } } }));
  const env = { ...process.env, CRABLET_STATE_DIR: join(folder, "state") };
  const grant = (...client) =>
    String(
      execFileSync(program, ["grant", "--http", "--server", NAME, ...client], {
        env,
        stdio: ["ignore", "pipe", "ignore"],
      }),
    ).trim();
  const shim = spawn(program, ["serve", "--config", config, "--port", "0"], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said = await Promise.race([
    new Promise((read) => createInterface({ input: shim.stdout }).once("line", read)),
    new Promise((_, fail) => shim.once("exit", (code) => fail(new Error(`crablet-shim exited with ${code}`)))),
  ]);
  const port = Number(/127\.0\.0\.1:(\d+)/.exec(said)[1]);
  const stop = async () => {
    if (shim.exitCode === null) {
      const ended = new Promise((ended) => shim.once("exit", ended));
      shim.kill("SIGTERM");
      await ended;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  return { url: `http://${HOST}:${port}/mcp/${NAME}`, port, grant, stop };
}

/** Starts the shim as {@link startShim} does, and the relay. Gives the relay's address, and a function that ends everything. */
export async function startServer(program, command) {
  const shim = await startShim(program, command);
  const { port } = shim;
  const relay = createServer();
  await new Promise((listening) => relay.listen(0, HOST, listening));
  const authority = `${HOST}:${relay.address().port}`;
  const tokens = { native: shim.grant("--native"), page: shim.grant("--origin", `http://${authority}`) };

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
    await shim.stop();
  };
  return { url: `http://${authority}/mcp/${NAME}`, stop };
}
