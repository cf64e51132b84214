// An agent behind subjects of a real nats-server: workers in processes of their own that are killed, stopped and cut off, and an
// external ledger of what their tools really did.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { withPage } from "../lib/browser.mjs";
import { startNats } from "../lib/nats-server.mjs";
import { run, startServer } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";
import { serveFolder } from "../lib/servers.mjs";
import { linkPackages } from "./interop.mjs";

export default async function agentService(project) {
  await linkPackages(project.folder, "nats");
  const { checkAll } = await import(join(project.tests, "agent-service/checks.mjs"));
  const folder = await mkdtemp(join(tmpdir(), "crablet-agent-service-"));
  let count = 0;
  const ledgerOf = () => join(folder, `ledger-${count++}`);
  const start = (program, args, options) =>
    startServer(program, [...args, JSON.stringify(options)], { ready: /^serving as (.*)$/m });
  const startWorker = (options) =>
    start(process.execPath, [join(project.tests, "fixtures/agent-service/worker.mjs")], options);
  // Built by scripts/scale.sh.
  const native = process.env.CRABLET_LEDGER_WORKER;
  const startNative = native === undefined ? undefined : (options) => start(native, [], options);
  const readLedger = async (file) =>
    (await readFile(file, "utf8").catch(() => "")).split("\n").filter((line) => line !== "");
  const servePage = async (page) => {
    const vite = join(repository, "pkg-tests/node_modules/vite/bin/vite.js");
    await run(process.execPath, [vite, "build", "--logLevel", "error"], { cwd: page });
    return await serveFolder(join(page, "dist"));
  };
  try {
    const machine = `${cpus().length} × ${cpus()[0]?.model ?? "unknown"}`;
    const world = { startNats, startWorker, startNative, ledgerOf, readLedger, servePage, withPage };
    return await checkAll({ ...world, machine, repository, project });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
