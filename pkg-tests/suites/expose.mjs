// Tools that live in a real page at the clients that official SDKs make of local agents: the packed package in Chromium, paired
// with `crablet-shim serve`, and `crablet-shim expose` over standard input and output.
import assert from "node:assert/strict";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { withPage } from "../lib/browser.mjs";
import { freePort, run, startServer } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";
import { serveFolder } from "../lib/servers.mjs";

const binary = join(repository, "target/debug/crablet-shim");
const rmcp = join(repository, "target/debug/rmcp-client");
const python = join(repository, ".cache/python-servers/bin/python");
const servers = join(repository, "pkg-tests/servers");

/** In Chromium behind a switch, since its origin trial is over. */
const WEB_MCP = "--enable-blink-features=WebMCP,ModelContext";

export default async function expose(project) {
  await run("cargo", ["build", "--quiet", "-p", "crablet-shim"], { cwd: repository, timeout: 900_000 });
  const manifest = join(servers, "rmcp-client/Cargo.toml");
  const build = ["build", "--quiet", "--locked", "--manifest-path", manifest, "--target-dir", "target"];
  await run("cargo", build, { cwd: repository, timeout: 900_000 });
  const folder = join(project.tests, "fixtures/expose");
  const installed = join(project.folder, "node_modules/crablet");
  await cp(installed, join(folder, "crablet"), { recursive: true, dereference: true });
  const policy = "script-src 'self' 'wasm-unsafe-eval'; connect-src 'self' ws://127.0.0.1:*";
  const site = await serveFolder(folder, { "content-security-policy": policy });
  const shim = await startShim(project);
  try {
    const clients = await withPage((page) => agentsOf(page, site.url, shim));
    await withPage((page) => consentOf(page, site.url, shim));
    await withPage((page) => comesAndGoes(page, site.url, shim));
    await withPage((page) => webMcp(page, site.url, shim), { args: [WEB_MCP] });
    return `tools of a page in Chromium at ${clients.join(", ")}; consent, a shim that comes and goes, document.modelContext`;
  } finally {
    await shim.stop();
    await site.stop();
  }
}

/** What the official clients do with the tools of a page. */
async function agentsOf(page, url, shim) {
  await openAndPair(page, url, shim, "--accept-changes");
  await told(page, "echo", "offeredAs");
  const env = shim.env;
  const limits = { env, timeout: 120_000 };
  const outputs = [
    await run(process.execPath, [join(servers, "expose-clients.mjs"), binary, url], { ...limits, cwd: servers }),
    await run(python, [join(servers, "expose_client.py"), binary, url], limits),
    await run(rmcp, [binary, url], limits),
  ];
  return outputs.flatMap((output) => [...output.matchAll(/^ok (.*)$/gm)].map(([, name]) => name));
}

/** What is new or changed waits, and is told to the page. */
async function consentOf(page, url, shim) {
  await openAndPair(page, url, shim);
  assert.match(await told(page, "forget", "withheld"), /destroy/);
  const changed = await page.evaluate(() => {
    window.offer({ echo: window.said("something else"), other: window.said("more") });
    return window.told("other", "withheld");
  });
  assert.match(changed, /new since/);
  assert.match(await told(page, "echo", "withheld"), /changed/);
  const listed = await shim.run("consent");
  const [id] = new RegExp(`^[0-9a-f]{10}(?=  echo  of ${url}  \\(changed\\))`, "m").exec(listed) ?? [];
  assert.ok(id, listed);
  assert.match(listed, /description {2}Says something else/);
  await shim.run("consent", id);
  await told(page, "echo", "offeredAs");
  const { status, tools } = await page.evaluate(() => window.exposed.state);
  assert.equal(status, "connected");
  assert.equal(tools.find(({ name }) => name === "other").awaitsConsent, true);
}

/** A shim that is killed and started again has the page back; a token that is taken back ends it. */
async function comesAndGoes(page, url, shim) {
  await openAndPair(page, url, shim);
  const name = await told(page, "where", "offeredAs");
  await page.evaluate(() => {
    window.wentAway = window.statusIs((status) => status !== "connected");
  });
  await shim.restart();
  const again = await page.evaluate(async () => {
    await window.wentAway;
    await window.statusIs((status) => status === "connected");
    return window.told("where", "offeredAs");
  });
  assert.equal(again, name);
  const token = await page.evaluate(() => JSON.parse(sessionStorage.getItem("shim")).token);
  await shim.run("revoke", "--", token.split(".")[0]);
  const ended = await page.evaluate(async () => {
    await window.statusIs((status) => status === "closed");
    return { kind: window.exposed.state.error.kind, tools: window.exposed.state.tools };
  });
  assert.deepEqual(ended, { kind: "auth", tools: [] });
}

/** Tools that the page registers at `document.modelContext` are offered as they come and go. */
async function webMcp(page, url, shim) {
  await openAndPair(page, `${url}/?webmcp`, shim, "--accept-changes");
  const seen = await page.evaluate(async () => {
    const inputSchema = { type: "object", properties: { to: { type: "string" } }, required: ["to"] };
    const execute = async ({ to }, { signal }) => ({ greeted: to, isAborted: signal.aborted });
    await window.register("greet", { title: "Greet", inputSchema, execute, annotations: { readOnlyHint: true } });
    await window.register("buy", { execute: async () => "bought" });
    return { greet: await window.told("greet", "offeredAs"), buy: await window.told("buy", "withheld") };
  });
  assert.match(seen.buy, /readOnlyHint/);
  const call = { name: seen.greet, arguments: { to: "Ada" } };
  const [listed, called] = await shim.ask(["tools/list", {}], ["tools/call", call]);
  assert.deepEqual(
    listed.tools.map(({ name, title }) => [name, title]),
    [[seen.greet, `${url}: Greet`]],
  );
  assert.deepEqual(called.structuredContent, { greeted: "Ada", isAborted: false });
  await page.evaluate(async () => {
    window.unregister();
    while (window.exposed.state.tools.length > 0) await window.news();
  });
}

async function openAndPair(page, url, shim, ...further) {
  await page.goto(url);
  const code = await shim.pair("--expose", ...further);
  await page.evaluate(([code, url]) => window.pair(code, url), [code, shim.url]);
}

function told(page, name, wanted) {
  return page.evaluate(([name, wanted]) => window.told(name, wanted), [name, wanted]);
}

async function startShim(project) {
  const own = join(project.folder, "expose");
  await mkdir(own, { recursive: true });
  const config = join(own, "servers.json");
  await writeFile(config, JSON.stringify({ mcpServers: {} }));
  const env = { CRABLET_STATE_DIR: join(own, "state") };
  const port = await freePort();
  const start = () =>
    startServer(binary, ["serve", "--config", config, "--port", String(port)], { ready: /listens on/, env });
  let serving = await start();
  const waiting = [];
  return {
    env,
    url: `ws://127.0.0.1:${port}`,
    run: (...args) => run(binary, args, { env }),
    /** The code of a `pair` that waits. */
    async pair(...args) {
      const pairing = await startServer(binary, ["pair", ...args], { ready: /^\w{4}-\w{4}-\w{4}$/m, env });
      waiting.push(pairing);
      return pairing.match[0];
    },
    /** The results of requests to an `expose` that is started for them. */
    async ask(...requests) {
      const meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
      };
      const lines = requests.map(([method, params], id) =>
        JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta: meta } }),
      );
      const file = join(own, "requests");
      await writeFile(file, `${lines.join("\n")}\n`);
      const output = await run("sh", ["-c", `"$1" expose < "$2"`, "sh", binary, file], { env });
      const answers = output.split("\n").filter((line) => line.startsWith("{"));
      return answers
        .map((line) => JSON.parse(line))
        .filter(({ id }) => id !== undefined)
        .sort((one, other) => one.id - other.id)
        .map(({ result }) => result);
    },
    async restart() {
      await serving.kill();
      serving = await start();
    },
    async stop() {
      for (const pairing of waiting) await pairing.stop();
      await serving.stop();
    },
  };
}
