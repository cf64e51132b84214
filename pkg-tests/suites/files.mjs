// The file tools over the stores of a real Chromium: the origin private file system and a directory handle.
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { withPage } from "../lib/browser.mjs";
import { serveFolder } from "../lib/servers.mjs";

export default async function files(project) {
  const folder = join(project.tests, "fixtures/files");
  const installed = join(project.folder, "node_modules/crablet");
  await cp(installed, join(folder, "crablet"), { recursive: true, dereference: true });
  const site = await serveFolder(folder, {}, { "/redirect": "/index.html" });
  try {
    return await withPage(async (tab) => {
      await tab.goto(`${site.url}/index.html`);
      const names = await tab.evaluate(() => Object.keys(window.checks));
      for (const name of names) {
        const outcome = await tab.evaluate((check) => window.checks[check](), name);
        if (outcome !== "as it should be") throw new Error(`${name}: ${outcome}`);
      }
      return `${names.join(", ")} in Chromium`;
    });
  } finally {
    await site.stop();
  }
}
