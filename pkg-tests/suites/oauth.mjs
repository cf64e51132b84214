// A page in a real Chromium that asks a person in a window of its own, for an MCP server and an authorization server of other
// origins; and the service worker of an extension that is really loaded.
import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { withPage } from "../lib/browser.mjs";
import { startOAuthServers } from "../lib/oauth-servers.mjs";
import { serveFolder } from "../lib/servers.mjs";

export default async function oauth(project) {
  const folder = join(project.tests, "fixtures/oauth");
  await cp(join(project.folder, "node_modules/crablet"), join(folder, "crablet"), {
    recursive: true,
    dereference: true,
  });
  const site = await serveFolder(folder);
  try {
    await agrees(site, {});
    // A page that the opener cannot see into, and that says itself that the person is back.
    await agrees(site, { isolated: true });
    await closes(site);
    await fromExtension(project);
  } finally {
    await site.stop();
  }
  return "a window where a person agrees, one that its opener cannot see, and one that is closed, in Chromium; and an extension";
}

/** Opens the page, has it connect, and does with the window what a person would. */
async function connect(site, options, act) {
  const servers = await startOAuthServers({ page: true, ...options });
  try {
    return await withPage(async (tab) => {
      await tab.goto(`${site.url}/index.html?server=${encodeURIComponent(servers.url)}`);
      // A person is at the window. Without a screen, every page believes that it has the focus.
      if (options.isolated) await tab.evaluate(() => Object.assign(document, { hasFocus: () => false }));
      const opened = tab.context().waitForEvent("page");
      await tab.click("#connect");
      const window = await opened;
      if (options.isolated) {
        // However long the person takes.
        await window.waitForLoadState();
        await tab.waitForTimeout(3_000);
      }
      await act(window, servers);
      await tab.waitForFunction(() => document.querySelector("#outcome").value !== "");
      assert.equal(
        tab
          .context()
          .pages()
          .filter((page) => page.url().includes("/authorize")).length,
        0,
      );
      const outcome = await tab.evaluate(() => document.querySelector("#outcome").value);
      return { outcome, seen: servers.seen };
    });
  } finally {
    await servers.stop();
  }
}

async function agrees(site, options) {
  const { outcome, seen } = await connect(site, options, (window) => window.click("#allow"));
  assert.equal(outcome, "a person who agreed");
  assert.equal(seen.authorizations.length, 1);
  assert.equal(seen.authorizations[0].redirect_uri, `${site.url}/oauth-callback.html`);
}

async function closes(site) {
  const { outcome, seen } = await connect(site, {}, async (window) => {
    await window.waitForSelector("#allow");
    await window.close();
  });
  assert.match(outcome, /^auth: .*closed before it was over/);
  assert.deepEqual(seen.grants, []);
}

async function fromExtension(project) {
  const folder = join(project.tests, "fixtures/oauth-extension");
  await cp(join(project.folder, "node_modules/crablet"), join(folder, "crablet"), {
    recursive: true,
    dereference: true,
  });
  const { url, seen, stop } = await startOAuthServers();
  try {
    const connect = async (tab) => {
      const [loaded] = tab.context().serviceWorkers();
      const worker = loaded ?? (await tab.context().waitForEvent("serviceworker"));
      return worker.evaluate((server) => globalThis.connect(server), url);
    };
    const text = await withPage(connect, { extension: folder });
    assert.equal(text, "a person who agreed");
    assert.match(seen.authorizations[0].redirect_uri, /^https:\/\/[a-p]{32}\.chromiumapp\.org\/$/);
  } finally {
    await stop();
  }
}
