// The package in every context of Firefox, and its store of sessions there.
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { browserCases } from "../lib/browser-cases.mjs";
import { streamInContexts } from "../lib/contexts.mjs";
import { withFirefoxPage } from "../lib/firefox.mjs";
import { runRows } from "../lib/rows.mjs";
import { serveFolder } from "../lib/servers.mjs";

export default function firefox(project) {
  return runRows({
    contexts: () => streamInContexts(project, withFirefoxPage, /cause: \w*Error$/),
    IndexedDB: () => keepSessions(project),
    ...browserCases(project, withFirefoxPage, { rounds: 200 }),
  });
}

/** The contract of stores in a page and in a worker. */
async function keepSessions(project) {
  const folder = join(project.tests, "fixtures/durable");
  await cp(join(project.tests, "stores/contract.mjs"), join(folder, "contract.mjs"));
  await cp(join(project.folder, "node_modules/crablet"), join(folder, "crablet"), { recursive: true });
  const site = await serveFolder(folder);
  try {
    return await withFirefoxPage(async (tab) => {
      await tab.goto(`${site.url}/index.html`);
      await tab.waitForFunction(() => window.lives !== undefined);
      await tab.evaluate(() => window.lives.contract());
      await tab.evaluate(() => window.lives.contractInWorker());
      return "the contract of stores in a page and in a worker";
    });
  } finally {
    await site.stop();
  }
}
