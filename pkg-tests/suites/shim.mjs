// The demo's main job from Node: an agent of the tarball reads a file through the shim and a real stdio server.
import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { sampleServer } from "../../www/demo/setup.mjs";
import { startShim, tokenIn } from "../../www/demo/shim.mjs";
import { run, startServer } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";

const SERVER = "files";

export default async function shim(project) {
  await run("cargo", ["build", "--quiet", "-p", "crablet-shim"], { cwd: repository, timeout: 600_000 });
  const folder = join(project.folder, "native");
  const files = join(folder, "files");
  await mkdir(files, { recursive: true });
  const name = `note-${randomBytes(4).toString("hex")}.txt`;
  const content = `the word is ${randomBytes(8).toString("hex")}`;
  await writeFile(join(files, name), content);

  const lines = [];
  const model = await startModelServer({ delay: 0 });
  const running = await startShim({
    binary: join(repository, "target/debug/crablet-shim"),
    folder,
    name: SERVER,
    server: await sampleServer(files),
    log: (line) => lines.push(line),
    onExit: (code) => lines.push(`the shim ended with exit code ${code}`),
  });
  try {
    const given = { modelUrl: model.url, shimUrl: running.url, code: await running.pair(), server: SERVER, file: name };
    const script = `import { readThroughShim } from "./pkg-tests/smoke/shim.mjs"; console.log(await readThroughShim(${JSON.stringify(given)}));`;
    const answer = await run(process.execPath, [...webSocketFlag(), "--input-type=module", "--eval", script], {
      cwd: project.folder,
      timeout: 60_000,
    });
    if (!answer.includes(content))
      throw new Error(`the answer does not hold the file:\n${answer}\n${lines.join("\n")}`);
  } finally {
    await running.stop();
    await model.close();
  }
  await claim(project);
  const clients = await overHttp(project);
  return `an agent in Node is paired with the shim and reads a file through it, and claims a result after its process was killed; ${clients} clients over HTTP`;
}

/** Clients of both eras over Streamable HTTP, with servers of both eras behind the shim: how many. */
async function overHttp(project) {
  const binary = join(repository, "target/debug/crablet-shim");
  const folder = join(project.folder, "http-front");
  await mkdir(folder, { recursive: true });
  const child = join(repository, "native-shim/tests/shim/http_child.mjs");
  const eras = ["stateless", "handshake"];
  const servers = Object.fromEntries(eras.map((era) => [era, { command: process.execPath, args: [child, era] }]));
  const lines = [];
  const running = await startShim({
    binary,
    folder,
    servers,
    log: (line) => lines.push(line),
    onExit: (code) => lines.push(`the shim ended with exit code ${code}`),
  });
  try {
    const named = eras.flatMap((era) => ["--server", era]);
    const env = { ...process.env, CRABLET_STATE_DIR: join(folder, "state") };
    const token = tokenIn(await run(binary, ["grant", "--native", "--http", ...named], { env }));
    const given = { url: running.url.replace("ws:", "http:"), token, servers: eras };
    const script = `import { callOverHttp } from "./pkg-tests/smoke/http-front.mjs"; console.log(await callOverHttp(${JSON.stringify(given)}));`;
    const output = await run(process.execPath, ["--input-type=module", "--eval", script], {
      cwd: project.folder,
      timeout: 60_000,
    });
    return output.trim();
  } catch (error) {
    throw new Error(`over HTTP: ${error.message}\n${lines.join("\n")}`, { cause: error });
  } finally {
    await running.stop();
  }
}

/** A payment that is at work when its process is killed: the next process claims the receipt, and nothing is paid twice. */
async function claim(project) {
  const folder = join(project.folder, "claim");
  const ledger = join(folder, "ledger");
  const fixtures = join(project.tests, "fixtures/claim");
  await mkdir(folder, { recursive: true });
  const lines = [];
  const running = await startShim({
    binary: join(repository, "target/debug/crablet-shim"),
    folder,
    name: "bank",
    server: { command: process.execPath, args: [join(fixtures, "bank.mjs"), ledger] },
    log: (line) => lines.push(line),
    onExit: (code) => lines.push(`the shim ended with exit code ${code}`),
  });
  const life = (name) => [...webSocketFlag(), join(fixtures, "payer.mjs"), name, folder, running.url, running.token];
  try {
    const first = await startServer(process.execPath, life("begin"), { ready: /^at work$/m });
    await first.kill();
    await writeFile(`${ledger}.release`, "");
    const output = await run(process.execPath, life("goOn"), { timeout: 60_000 });
    const paid = await readFile(ledger, "utf8");
    if (!output.includes("receipt 4711") || paid !== "paid\n")
      throw new Error(`claimed: ${output}\nthe ledger: ${paid}\n${lines.join("\n")}`);
  } finally {
    await running.stop();
  }
}

/** Node has a WebSocket of its own from 22 on, and before behind this flag. */
function webSocketFlag() {
  return globalThis.WebSocket === undefined ? ["--experimental-websocket"] : [];
}
