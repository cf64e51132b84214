// Builds what the demo needs beyond the tools that `make` sets up: crablet's own package, the page, the shim. What is there already is
// not built again. Each step says what it does.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const demoFolder = dirname(fileURLToPath(import.meta.url));
const wwwFolder = dirname(demoFolder);
const rootFolder = dirname(wwwFolder);

/** The built page. */
export const pageFolder = join(rootFolder, "dist/page");

/** The folder that the demo lends to the agent, as a copy. */
export const sampleFolder = join(demoFolder, "sample");

/** Builds everything. Returns the path of the shim's binary. */
export async function setUp(say) {
  await installCrablet(say);
  await buildPage(say);
  return await buildShim(say);
}

/** The command line of the sample MCP server over `folder`. */
export async function sampleServer(folder) {
  const manifestPath = join(demoFolder, "node_modules/@modelcontextprotocol/server-filesystem/package.json");
  const { bin } = JSON.parse(await readFile(manifestPath, "utf8"));
  const script = typeof bin === "string" ? bin : Object.values(bin)[0];
  return { command: process.execPath, args: [join(dirname(manifestPath), script), folder], cwd: folder };
}

/** Puts the packed tarball of `dist/` where the page imports it from, building it first when the sources are newer. */
async function installCrablet(say) {
  let tarball = await newestTarball();
  const sources = await newestTime(join(rootFolder, "src"));
  if (!tarball || tarball.time < sources) {
    say("building the npm package (make package; some minutes the first time)");
    await run("make", ["package"], rootFolder);
    tarball = await newestTarball();
    if (!tarball) throw new Error("make package left no crablet-*.tgz in dist/");
  }
  const target = join(wwwFolder, "node_modules/crablet");
  const installed = await stat(join(target, "package.json")).catch(() => undefined);
  const stamp = await readFile(join(target, ".crablet-stamp"), "utf8").catch(() => "");
  if (installed && stamp === stampOf(tarball)) return;
  say("unpacking the packed crablet into the page");
  // What npm would do with a package that has no dependencies, without an entry in the lock file that changes at every build.
  await rm(target, { recursive: true, force: true });
  await mkdir(target, { recursive: true });
  await run("tar", ["-xzf", tarball.path, "-C", target, "--strip-components=1"], wwwFolder);
  await writeFile(join(target, ".crablet-stamp"), stampOf(tarball));
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

async function newestTarball() {
  const folder = join(rootFolder, "dist");
  await mkdir(folder, { recursive: true });
  const names = (await readdir(folder)).filter((name) => /^crablet-\d.*\.tgz$/.test(name));
  const found = await Promise.all(
    names.map(async (name) => ({ path: join(folder, name), time: (await stat(join(folder, name))).mtimeMs })),
  );
  return found.sort((one, other) => other.time - one.time)[0];
}

function stampOf(tarball) {
  return `${tarball.path} ${tarball.time}`;
}

/** When the newest file at or below `path` was changed; 0 when there is none. What builds leave behind is not looked at. */
async function newestTime(path) {
  if (!existsSync(path)) return 0;
  const info = await stat(path);
  if (!info.isDirectory()) return info.mtimeMs;
  const names = (await readdir(path)).filter((name) => !["node_modules", "pkg", "dist", "generated"].includes(name));
  return Math.max(0, ...(await Promise.all(names.map((name) => newestTime(join(path, name))))));
}

async function run(command, parameters, folder) {
  const code = await exitCode(spawn(command, parameters, { cwd: folder, stdio: ["ignore", "inherit", "inherit"] }));
  if (code !== 0) throw new Error(`${[command, ...parameters].join(" ")} failed with exit code ${code}`);
}

async function capture(command, parameters, folder) {
  const child = spawn(command, parameters, { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (piece) => {
    output += piece;
  });
  return { code: await exitCode(child), output };
}

function exitCode(child) {
  return new Promise((resolve, reject) => {
    child.on("error", (error) => reject(new Error(`${child.spawnfile} could not be started: ${error.message}`)));
    child.on("close", resolve);
  });
}
