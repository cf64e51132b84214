// Real MCP servers, each with a list of tools and a call: over HTTP from Node and from a page, over stdio through the shim.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startEverything } from "../../www/demo/everything.mjs";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { startShim } from "../../www/demo/shim.mjs";
import { withPage } from "../lib/browser.mjs";
import { freePort, run, startServer } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";
import { expectedEcho } from "../smoke/expected.mjs";
import { servePage } from "./bundler.mjs";

const npmServers = join(repository, "pkg-tests/servers");
const python = join(repository, ".cache/python-servers/bin");

export default async function live(project) {
  const stops = [];
  try {
    const everything = await startEverything();
    stops.push(everything.stop);
    await fromNodeAndPage(project, everything.url, stops);
    const http = { everything: everything.url, ...(await startHttpServers(stops)) };
    const folder = await makeRepository(project);
    const shim = await startShimOver(folder, project, stops);
    const lines = await evaluate(project, "smoke/matrix.mjs", "callAll", { shim, http, folder });
    const many = await evaluate(project, "smoke/many-calls.mjs", "callMany", http.sdk);
    return `server-everything from Node and from a page in Chromium; ${JSON.parse(lines).join(", ")}; ${JSON.parse(many)}`;
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

async function fromNodeAndPage(project, mcpUrl, stops) {
  const model = await startModelServer({ delay: 0 });
  stops.push(() => model.close());
  const page = await servePage(project);
  stops.push(page.stop);
  const urls = { modelUrl: model.url, mcpUrl };
  expect("Node", JSON.parse(await evaluate(project, "smoke/mcp.mjs", "echoThroughMcp", urls)));
  const fromPage = await withPage(async (tab) => {
    await tab.goto(page.url);
    return tab.evaluate((given) => window.echoThroughMcp(given), urls);
  });
  expect("a page", fromPage);
}

/** Calls a function of the tests' folder in a Node of its own; its result as JSON. */
async function evaluate(project, file, name, given) {
  const script = `import { ${name} } from "./pkg-tests/${file}"; console.log(JSON.stringify(await ${name}(${JSON.stringify(given)})));`;
  // Node has a WebSocket of its own from 22 on, and before behind this flag.
  const flags = globalThis.WebSocket === undefined ? ["--experimental-websocket", "--no-warnings"] : [];
  const output = await run(process.execPath, [...flags, "--input-type=module", "--eval", script], {
    cwd: project.folder,
    timeout: 180_000,
  });
  return output.trim().split("\n").at(-1);
}

async function startHttpServers(stops) {
  const start = async (program, args, { path = "/mcp", ready = /./, env = {} } = {}) => {
    const port = await freePort();
    const server = await startServer(program, [...args, String(port)], { ready, env: { ...env, PORT: String(port) } });
    stops.push(server.stop);
    await listening(port);
    return `http://127.0.0.1:${port}${path}`;
  };
  const script = join(npmServers, "node_modules/@modelcontextprotocol/server-everything/dist/index.js");
  return {
    sse: await start(process.execPath, [script, "sse"], { path: "/sse" }),
    fastmcp: await start(join(python, "python"), [join(npmServers, "fastmcp_server.py")]),
    sdk: await start(process.execPath, [join(npmServers, "sdk-server.mjs")], { ready: /^/ }),
  };
}

/** Resolves when something accepts connections at the port. */
async function listening(port) {
  const deadline = Date.now() + 20_000;
  while (Date.now() < deadline) {
    const isThere = await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
    if (isThere) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`nothing listens on port ${port}`);
}

/** A git repository with one file that is not committed. */
async function makeRepository(project) {
  const folder = join(project.folder, "live");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "note.txt"), "the word is crab");
  await run("git", ["init", "--quiet"], { cwd: folder });
  return folder;
}

async function startShimOver(folder, project, stops) {
  await run("cargo", ["build", "--quiet", "-p", "crablet-shim"], { cwd: repository, timeout: 600_000 });
  const own = join(project.folder, "shim");
  await mkdir(own, { recursive: true });
  const npm = (name, ...args) => ({
    command: process.execPath,
    args: [join(npmServers, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`), ...args],
    cwd: folder,
  });
  const servers = {
    everything: npm("everything", "stdio"),
    filesystem: npm("filesystem", folder),
    memory: npm("memory"),
    time: { command: join(python, "mcp-server-time"), args: [], cwd: folder },
    git: { command: join(python, "mcp-server-git"), args: [], cwd: folder },
  };
  const { url, token, stop } = await startShim({
    binary: join(repository, "target/debug/crablet-shim"),
    folder: own,
    servers,
    log() {},
    onExit() {},
  });
  stops.push(stop);
  return { url, token };
}

function expect(where, seen) {
  if (seen !== expectedEcho) throw new Error(`from ${where}: ${seen}`);
}
