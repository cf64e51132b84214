// `make demo`: the page, a model, and a real stdio MCP server behind crablet-shim, until Ctrl-C.
//
//   MODEL_URL, MODEL, API_KEY   use this OpenAI-compatible server instead of the scripted model
//   DEMO_PORT                   the page's port (default: any free one)
import { randomBytes } from "node:crypto";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startModelServer } from "./model-server.mjs";
import { startPageServer } from "./page-server.mjs";
import { pageFolder, sampleFolder, sampleServer, setUp } from "./setup.mjs";
import { startShim } from "./shim.mjs";
import { MODEL_NAME } from "./scripted-model.mjs";

/** The sample server's name in the shim's configuration and in the page. */
const SERVER_NAME = "files";

const PROMPTS = [
  "Read welcome.md",
  "List the folder and read notes/tea.txt",
  'Write "basil, soap, ink" to shopping.txt',
  "Count to 200",
];

const say = (line) => console.log(`demo: ${line}`);

/** What to undo at the end, newest first. */
const cleanUps = [];
let isStopping = false;

async function stop(exitCode) {
  if (isStopping) return;
  isStopping = true;
  while (cleanUps.length > 0)
    await cleanUps
      .pop()()
      .catch((error) => console.error(`demo: ${error.message}`));
  say("stopped");
  process.exit(exitCode);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => void stop(0));
process.on("uncaughtException", (error) => {
  console.error(`demo: ${error.stack ?? error.message}`);
  void stop(1);
});

async function start() {
  // What is wrong with the environment is said before anything is built.
  const named = namedModel(process.env);
  const binary = await setUp(say);

  const folder = await mkdtemp(join(tmpdir(), "crablet-demo-"));
  cleanUps.push(() => rm(folder, { recursive: true, force: true }));
  const files = join(folder, "files");
  await cp(sampleFolder, files, { recursive: true });

  const page = await startPageServer({ folder: pageFolder, port: Number(process.env.DEMO_PORT ?? 0) });
  cleanUps.push(page.close);
  const model = named ?? (await startScriptedModel());
  const shim = await startShim({
    binary,
    folder,
    origin: page.origin,
    name: SERVER_NAME,
    server: await sampleServer(files),
    log: (line) => console.log(`shim: ${line}`),
    onExit: (code) => say(`crablet-shim has ended with exit code ${code}; the page will say so`),
  });
  cleanUps.push(shim.stop);

  const secret = randomBytes(18).toString("base64url");
  page.publish(`/demo-${secret}.json`, {
    model,
    scripted: named === undefined,
    servers: [{ type: "shim", name: SERVER_NAME, url: shim.url, token: shim.token }],
    prompts: PROMPTS,
  });

  say(`model        ${model.model} at ${model.baseUrl}${named === undefined ? " (scripted, needs no key)" : ""}`);
  say(`MCP server   @modelcontextprotocol/server-filesystem over ${files}`);
  say(`shim         ${shim.url}, process ${shim.pid}`);
  say(`page         ${page.origin}/#demo=${secret}`);
  say("ready: open the page's address in a browser; Ctrl-C stops everything");
}

/** The settings of the server that the environment names, or `undefined`. */
function namedModel({ MODEL_URL, MODEL, API_KEY }) {
  if (!MODEL_URL) return undefined;
  if (!MODEL) {
    throw new Error(
      "MODEL_URL is set but MODEL is not: say which model, as in make demo MODEL_URL=http://127.0.0.1:11434/v1 MODEL=qwen3",
    );
  }
  return { provider: "compatible", model: MODEL, baseUrl: MODEL_URL, apiKey: API_KEY ?? "" };
}

async function startScriptedModel() {
  const server = await startModelServer({ log: (line) => console.log(`model: ${line}`) });
  cleanUps.push(server.close);
  return { provider: "compatible", model: MODEL_NAME, baseUrl: server.url, apiKey: "" };
}

start().catch((error) => {
  console.error(`demo: ${error.message}`);
  void stop(1);
});
