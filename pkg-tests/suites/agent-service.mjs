// An agent behind subjects of a real nats-server: workers in processes of their own that are killed, stopped and cut off, and an
// external ledger of what their tools really did.
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { startNats } from "../lib/nats-server.mjs";
import { startServer } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";

export default async function agentService(project) {
  const packages = join(project.folder, "node_modules/@nats-io");
  if (!existsSync(packages)) await symlink(join(repository, "pkg-tests/nats/node_modules/@nats-io"), packages, "dir");
  const { checkAll } = await import(join(project.tests, "agent-service/checks.mjs"));
  const folder = await mkdtemp(join(tmpdir(), "crablet-agent-service-"));
  let count = 0;
  const ledgerOf = () => join(folder, `ledger-${count++}`);
  const startWorker = (options) =>
    startServer(process.execPath, [join(project.tests, "fixtures/agent-service/worker.mjs"), JSON.stringify(options)], {
      ready: /^serving as (.*)$/m,
    });
  const readLedger = async (file) =>
    (await readFile(file, "utf8").catch(() => "")).split("\n").filter((line) => line !== "");
  try {
    const machine = `${cpus().length} × ${cpus()[0]?.model ?? "unknown"}`;
    return await checkAll({ startNats, startWorker, ledgerOf, readLedger, machine, repository, project });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
