// Builds what the demo needs beyond the tools that `make` sets up: crablet's own package, the page, the shim. What is there already is
// not built again. Each step says what it does.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { capture, demoFolder, newestTime, rootFolder, run, wwwFolder } from "./building.mjs";
import { installCrablet } from "./crablet-package.mjs";

/** The built page. */
export const pageFolder = join(rootFolder, "dist/page");

/** The folder that the demo lends to the agent, as a copy. */
export const sampleFolder = join(demoFolder, "sample");

/** Builds everything. Returns the path of the shim's binary. */
export async function setUp(say) {
  await setUpPage(say);
  return await buildShim(say);
}

/** Builds the page, with the package that it needs. */
export async function setUpPage(say) {
  await installCrablet(say);
  await buildPage(say);
}

/** The command line of the sample MCP server over `folder`. */
export async function sampleServer(folder) {
  const manifestPath = join(demoFolder, "node_modules/@modelcontextprotocol/server-filesystem/package.json");
  const { bin } = JSON.parse(await readFile(manifestPath, "utf8"));
  const script = typeof bin === "string" ? bin : Object.values(bin)[0];
  return { command: process.execPath, args: [join(dirname(manifestPath), script), folder], cwd: folder };
}

async function buildPage(say) {
  const built = await newestTime(pageFolder);
  const inputs = [
    "src",
    "public",
    "index.html",
    "vite.config.ts",
    "package-lock.json",
    "node_modules/crablet/.crablet-stamp",
  ];
  const newest = Math.max(...(await Promise.all(inputs.map((input) => newestTime(join(wwwFolder, input))))));
  if (built > newest) return;
  say("building the page");
  await run(process.execPath, [viteCommand(), "build", "--logLevel", "warn"], wwwFolder);
}

async function buildShim(say) {
  say("building crablet-shim (some minutes the first time)");
  const parameters = ["build", "--quiet", "--package", "crablet-shim", "--message-format", "json"];
  const { code, output } = await capture("cargo", parameters, rootFolder);
  const messages = output
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
  const built = messages.find((message) => message.executable && message.target?.name === "crablet-shim");
  if (code === 0 && built) return built.executable;
  // Warnings are for those who work on the shim; errors are for everybody.
  for (const { message } of messages) if (message?.level === "error") console.error(message.rendered);
  throw new Error(`cargo ${parameters.join(" ")} failed with exit code ${code}`);
}

function viteCommand() {
  const manifestPath = createRequire(join(wwwFolder, "package.json")).resolve("vite/package.json");
  return join(dirname(manifestPath), "bin/vite.js");
}
