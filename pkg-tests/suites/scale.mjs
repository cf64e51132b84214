// Three shims as one queue group of a real nats-server, one of them killed under load; a page in Chromium that calls the same
// servers; and how many calls a second one, two and four shims do.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { withPage } from "../lib/browser.mjs";
import { startNats } from "../lib/nats-server.mjs";
import { run } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";
import { serveFolder } from "../lib/servers.mjs";
import { linkPackages } from "./interop.mjs";
import { buildShim } from "./nats.mjs";

export default async function scale(project) {
  await linkPackages(project.folder, "nats");
  process.env.CRABLET_SHIM_NATS = await buildShim(project);
  // The package as the project has it, and the helpers that find theirs beside it.
  const { killedUnderLoad, throughput } = await import(join(project.tests, "nats/load.mjs"));
  const { startNatsShim } = await import(join(project.tests, "nats/support.mjs"));
  const where = await mkdtemp(join(tmpdir(), "crablet-scale-"));
  const nats = await startNats();
  try {
    const lines = [await killedUnderLoad({ url: nats.url, where: await folder(where, "killed") })];
    lines.push(await fromPage(project, nats, startNatsShim, await folder(where, "page")));
    lines.push(`on ${cpus().length} × ${cpus()[0].model}, shims built without optimisation:`);
    for (const shims of [1, 2, 4]) {
      lines.push(await throughput({ url: nats.url, where: await folder(where, `speed-${shims}`), shims }));
    }
    return `\n  ${lines.join("\n  ")}`;
  } finally {
    await nats.stop();
    await rm(where, { recursive: true, force: true });
  }
}

async function folder(where, name) {
  const path = join(where, name);
  await mkdir(path);
  return path;
}

async function fromPage(project, nats, startNatsShim, where) {
  const page = join(project.tests, "nats/page");
  const vite = join(repository, "pkg-tests/node_modules/vite/bin/vite.js");
  await run(process.execPath, [vite, "build", "--logLevel", "error"], { cwd: page });
  const shim = await startNatsShim({ url: nats.url, where });
  const site = await serveFolder(join(page, "dist"));
  try {
    const seen = await withPage(async (tab) => {
      await tab.goto(site.url);
      await tab.waitForFunction(() => window.callOverNats !== undefined);
      return await tab.evaluate((address) => window.callOverNats(address), nats.webSocketUrl);
    });
    for (const line of seen) if (!line.endsWith("progress 1,2, done")) throw new Error(`a page saw ${line}`);
    return `a page in Chromium over WebSocket: ${seen.length} connections, calls and progress`;
  } finally {
    await site.stop();
    await shim.stop();
  }
}
