// The snippets of the README, as they stand there.
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { withPage } from "../lib/browser.mjs";
import { startOllamaStandIn } from "../lib/ollama.mjs";
import { freePort, run, startServer } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";
import { serveFolder } from "../lib/servers.mjs";
import { readSnippets } from "../lib/snippets.mjs";

const OLLAMA = "http://localhost:11434";

export default async function readme(project) {
  const snippets = await readSnippets(join(repository, "README.md"));
  const model = await startModelServer({ delay: 0 });
  const ollama = await startOllamaStandIn(model.url);
  try {
    await checkAgent(project, snippets, ollama);
    await checkRust(snippets, ollama);
    await checkShim(project, snippets, ollama);
  } finally {
    await ollama.stop();
    await model.close();
  }
  return `${snippets.size} blocks`;
}

/** The way of a newcomer: a folder with nothing in it, what npm writes there, the package, the snippet. */
async function checkAgent(project, snippets, ollama) {
  const folder = await mkdtemp(join(tmpdir(), "crablet-newcomer-"));
  try {
    await run("npm", ["init", "-y"], { cwd: folder });
    await run("npm", ["install", "--no-audit", "--no-fund", project.tarball], { cwd: folder });
    const installed = (await readdir(join(folder, "node_modules"))).filter((name) => !name.startsWith("."));
    if (installed.join() !== "crablet") throw new Error(`with crablet come ${installed}`);
    await writeFile(join(folder, "agent.mjs"), snippets.get("agent.mjs"));
    const redirect = join(project.tests, "fixtures/readme/redirect.mjs");
    const output = await run(process.execPath, ["--import", redirect, "agent.mjs"], {
      cwd: folder,
      env: { OLLAMA_STAND_IN: ollama.url },
      timeout: 30_000,
    });
    expectForecast("agent.mjs", output.replaceAll("\n", ""));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Cargo builds examples of the repository only, so the snippet is one of them, and has to be the same text. */
async function checkRust(snippets, ollama) {
  const example = await readFile(join(repository, "examples/weather.rs"), "utf8");
  if (!example.endsWith(`\n\n${snippets.get("weather.rs")}`))
    throw new Error("the README's Rust is not examples/weather.rs");
  const output = await run("cargo", ["run", "--quiet", "--example", "weather"], {
    cwd: repository,
    env: { http_proxy: ollama.url, no_proxy: "" },
    timeout: 600_000,
  });
  expectForecast("weather.rs", output);
}

function expectForecast(name, output) {
  if (!output.includes("Oslo: 12 °C, light rain")) throw new Error(`${name} did not answer from its tool:\n${output}`);
}

/** The shim's commands in a folder with the README's configuration, and its page in a browser. */
async function checkShim(project, snippets, ollama) {
  await run("cargo", ["build", "--quiet", "-p", "crablet-shim"], { cwd: repository, timeout: 600_000 });
  const folder = join(project.folder, "shim");
  await mkdir(join(folder, "home"), { recursive: true });
  await writeFile(join(folder, "servers.json"), snippets.get("servers.json"));
  await writeFile(join(folder, "notes.txt"), "the tea is at four");
  // npx then finds the server without asking a registry.
  await symlink(join(repository, "www/demo/node_modules"), join(folder, "node_modules"), "dir");

  // Another shim may hold the default port on this machine, so the test dials one of its own.
  const port = await freePort();
  const dial = `mcp.shim({ url: "ws://127.0.0.1:${port}", `;
  const page = await buildPage(project, snippets.get("page.mjs").replace("mcp.shim({ ", dial));
  const [grant, serve] = snippets.get("shim.sh").split("\n");
  const home = join(folder, "home");
  const shell = {
    cwd: folder,
    env: { HOME: home, CRABLET_STATE_DIR: home, PATH: `${join(repository, "target/debug")}:${process.env.PATH}` },
  };
  const output = await run("sh", ["-c", grant.replace("http://localhost:5173", page.url)], shell);
  const token = /^\S+\.\S+$/m.exec(output)?.[0];
  if (!token) throw new Error(`no token in what grant printed:\n${output}`);
  const shim = await startServer("sh", ["-c", `exec ${serve} --port ${port}`], {
    ...shell,
    ready: new RegExp(`:${port}`),
  });
  try {
    const answer = await openPage(page.url, { token, modelUrl: ollama.url });
    if (!answer.includes("the tea is at four"))
      throw new Error(`page.mjs did not answer from the file:\n${answer}\n${shim.output()}`);
  } finally {
    await shim.stop();
    await page.stop();
  }
}

async function buildPage(project, code) {
  const folder = join(project.folder, "page");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "page.mjs"), code);
  await writeFile(
    join(folder, "index.html"),
    await readFile(join(project.tests, "fixtures/readme/index.html"), "utf8"),
  );
  const vite = join(repository, "pkg-tests/node_modules/vite/bin/vite.js");
  await run(process.execPath, [vite, "build", "--logLevel", "warn"], { cwd: folder });
  return serveFolder(join(folder, "dist"));
}

/** What the page's console says first. */
async function openPage(url, { token, modelUrl }) {
  return withPage(async (page) => {
    await page.addInitScript((given) => {
      sessionStorage.shimToken = given;
    }, token);
    await page.route(`${OLLAMA}/**`, async (route) => {
      const response = await route.fetch({ url: route.request().url().replace(OLLAMA, modelUrl) });
      await route.fulfill({ response });
    });
    const spoken = page.waitForEvent("console", { timeout: 30_000 });
    await page.goto(url);
    return (await spoken).text();
  });
}
