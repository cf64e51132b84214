// The snippets of docs/quick-start.md, as they stand there, each where its reader would put it.
import assert from "node:assert/strict";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { sampleServer } from "../../www/demo/setup.mjs";
import { startShim } from "../../www/demo/shim.mjs";
import { startAnthropicStandIn } from "../lib/anthropic-stand-in.mjs";
import { withPage } from "../lib/browser.mjs";
import { startOllamaStandIn } from "../lib/ollama.mjs";
import { run } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";
import { serveFolder } from "../lib/servers.mjs";
import { readSnippets } from "../lib/snippets.mjs";
import { layPackage, startWorkerd, workerdConfig } from "../lib/workerd.mjs";

const { build } = createRequire(join(repository, "pkg-tests/runtimes/package.json"))("esbuild");
const OLLAMA = "http://localhost:11434";
const PAGE = `<!doctype html><html lang="en"><head><title>a page</title><link rel="icon" href="data:," />
<script type="module">import * as snippet from "./bundle.js"; globalThis.snippet = snippet;</script></head>
<body><p>the tea is at four</p></body></html>`;

export default async function quickStart(project) {
  const snippets = await readSnippets(join(repository, "docs/quick-start.md"));
  await page(project, snippets);
  await extension(project, snippets);
  await edgeWorker(project, snippets);
  const model = await startModelServer({ delay: 0 });
  const ollama = await startOllamaStandIn(model.url);
  try {
    await rust(project, snippets, ollama);
    await localServers(project, snippets, ollama);
  } finally {
    await ollama.stop();
    await model.close();
  }
  return `${snippets.size} blocks: a page, an extension, an edge worker and its page, a Rust program, a page that is paired`;
}

/** Lays a snippet and what uses it into a folder, as one module. */
async function lay(project, name, files, { entry, ...options } = {}) {
  const folder = join(project.folder, "quick-start", name);
  await mkdir(folder, { recursive: true });
  for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text);
  await build({
    entryPoints: [join(folder, entry)],
    outfile: join(folder, "bundle.js"),
    bundle: true,
    format: "esm",
    target: "es2022",
    logLevel: "silent",
    ...options,
  });
  return folder;
}

const opened = (tab) => tab.waitForFunction(() => globalThis.snippet !== undefined);

const asked = (tab, prompt) =>
  tab.evaluate(async (text) => {
    let shown = "";
    await globalThis.snippet.ask(text, (more) => {
      shown += more;
    });
    return shown;
  }, prompt);

async function page(project, snippets) {
  const folder = await lay(
    project,
    "page",
    { "page.ts": snippets.get("page.ts"), "index.html": PAGE },
    { entry: "page.ts" },
  );
  const server = await startAnthropicStandIn({ folder });
  try {
    await withPage(async (tab) => {
      await tab.goto(`${server.url}/index.html`);
      await opened(tab);
      assert.equal(await asked(tab, "When is tea?"), "the tea is at four");
    });
  } finally {
    await server.stop();
  }
}

/** What goes to Anthropic goes to its stand-in; the rest is the snippet, and a page that asks it. */
async function extension(project, snippets) {
  const model = await startAnthropicStandIn();
  const worker = `const platformFetch = globalThis.fetch;
    globalThis.fetch = (url, options) => platformFetch(String(url).replace("https://api.anthropic.com", "${model.url}"), options);
    import { send } from "./extension.ts";
    chrome.runtime.onMessage.addListener((prompt, _sender, answer) => {
      send(prompt).then(answer, (error) => answer(String(error)));
      return true;
    });`;
  const manifest = {
    ...{ manifest_version: 3, name: "quick start", version: "1", permissions: ["storage"] },
    background: { service_worker: "bundle.js", type: "module" },
    host_permissions: [`${model.url}/*`],
    ...JSON.parse(snippets.get("extension.json")),
  };
  const files = {
    ...{ "extension.ts": snippets.get("extension.ts"), "worker.js": worker },
    ...{ "manifest.json": JSON.stringify(manifest), "page.html": "<!doctype html><title>a page</title>" },
  };
  const folder = await lay(project, "extension", files, { entry: "worker.js" });
  try {
    await withPage(
      async (tab) => {
        const context = tab.context();
        const started = context.serviceWorkers()[0] ?? (await context.waitForEvent("serviceworker"));
        await tab.goto(new URL("page.html", started.url()).href);
        await tab.evaluate(() => chrome.storage.session.set({ key: "sk-of-the-user" }));
        const send = (prompt) => tab.evaluate((text) => chrome.runtime.sendMessage(text), prompt);
        assert.equal(await send("first"), "you asked: first");
        // It can end at any moment; with the store nothing is lost by that.
        const session = await context.newCDPSession(tab);
        await session.send("ServiceWorker.enable");
        await session.send("ServiceWorker.stopAllWorkers");
        assert.equal(await send("second"), "you asked: second");
        assert.equal(model.requests.at(-1).messages.length, 3);
        assert.deepEqual([...model.keys], ["sk-of-the-user"]);
      },
      { extension: folder },
    );
  } finally {
    await model.stop();
  }
}

/** In workerd, whose one way out leads to the stand-in; its answer is read by the other snippet in a page. */
async function edgeWorker(project, snippets) {
  const model = await startAnthropicStandIn();
  const external = { entry: "worker.ts", external: ["crablet"] };
  const folder = await lay(project, "worker", { "worker.ts": snippets.get("worker.ts") }, external);
  const modules = ["bundle.js", ...(await layPackage(project, folder))];
  const worker = `\n  bindings = [ (name = "ANTHROPIC_API_KEY", text = "sk-of-the-worker") ],`;
  const services = `, (name = "model", external = (address = "${new URL(model.url).host}", http = ()))`;
  const config = workerdConfig(modules, { worker, services }).replace(
    'globalOutbound = "net"',
    'globalOutbound = "model"',
  );
  await writeFile(join(folder, "config.capnp"), config);
  const files = { "reader.ts": snippets.get("reader.ts"), "index.html": PAGE };
  const site = await serveFolder(await lay(project, "reader", files, { entry: "reader.ts" }));
  const server = await startWorkerd(folder);
  try {
    await withPage(async (tab) => {
      await tab.route("**/ask", async (route) => route.fulfill({ response: await route.fetch({ url: server.url }) }));
      await tab.goto(`${site.url}/index.html`);
      await opened(tab);
      assert.equal(await asked(tab, "Where am I?"), "you asked: Where am I?");
    });
    assert.deepEqual([...model.keys], ["sk-of-the-worker"]);
  } finally {
    await server.stop();
    await site.stop();
    await model.stop();
  }
}

/** A package of its own, with the dependencies that the text names; what is built is shared with the repository. */
async function rust(project, snippets, ollama) {
  const folder = join(project.folder, "quick-start/rust");
  await mkdir(join(folder, "src"), { recursive: true });
  const tokio = /^tokio = \{ version = "([^"]+)"/m.exec(await readFile(join(repository, "Cargo.toml"), "utf8"))[1];
  await writeFile(
    join(folder, "Cargo.toml"),
    `[package]
name = "quick-start"
version = "0.1.0"
edition = "2024"

[dependencies]
crablet = { path = ${JSON.stringify(repository)} }
tokio = { version = "${tokio}", features = ["macros", "rt-multi-thread"] }

[workspace]
`,
  );
  await cp(join(repository, "Cargo.lock"), join(folder, "Cargo.lock"));
  await writeFile(join(folder, "src/main.rs"), snippets.get("main.rs"));
  const output = await run("cargo", ["run", "--quiet"], {
    cwd: folder,
    env: { CARGO_TARGET_DIR: join(repository, "target"), http_proxy: ollama.url, no_proxy: "" },
    timeout: 600_000,
  });
  assert.match(output, /\S/);
}

/** A page that is paired reaches the server that was named. Another shim may have the default port, so this one has its own. */
async function localServers(project, snippets, ollama) {
  await run("cargo", ["build", "--quiet", "-p", "crablet-shim"], { cwd: repository, timeout: 600_000 });
  const home = join(project.folder, "quick-start/shim");
  const files = join(home, "files");
  await mkdir(files, { recursive: true });
  await writeFile(join(files, "notes.txt"), "the tea is at four");
  const site = await serveFolder(join(project.folder, "quick-start/pairing"));
  const lines = [];
  const shim = await startShim({
    binary: join(repository, "target/debug/crablet-shim"),
    folder: home,
    origin: site.url,
    name: "files",
    server: await sampleServer(files),
    log: (line) => lines.push(line),
    onExit: (code) => lines.push(`the shim ended with exit code ${code}`),
  });
  const dialled = snippets
    .get("pairing.ts")
    .replace("mcp.pairShim({ code })", `mcp.pairShim({ code, url: ${JSON.stringify(shim.url)} })`)
    .replace("mcp.shim({ server, token })", `mcp.shim({ server, token, url: ${JSON.stringify(shim.url)} })`);
  await lay(project, "pairing", { "pairing.ts": dialled, "index.html": PAGE }, { entry: "pairing.ts" });
  try {
    await withPage(async (tab) => {
      await tab.route(`${OLLAMA}/**`, async (route) => {
        const url = route.request().url().replace(OLLAMA, ollama.url);
        await route.fulfill({ response: await route.fetch({ url }) });
      });
      await tab.goto(`${site.url}/index.html`);
      await opened(tab);
      const code = await shim.pair();
      const text = await tab.evaluate(async (given) => {
        const agent = await globalThis.snippet.agentWith(given);
        return (await agent.run("What does notes.txt say?")).text;
      }, code);
      assert.match(text, /the tea is at four/);
    });
  } catch (error) {
    throw new Error(`${error.message}\n${lines.join("\n")}`, { cause: error });
  } finally {
    await site.stop();
    await shim.stop();
  }
}
