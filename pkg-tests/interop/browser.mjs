// The built page of this folder in a real Chromium, beside handlers of its origin.
import { join } from "node:path";
import { withPage } from "../lib/browser.mjs";
import { serveFetch } from "../lib/fetch-server.mjs";
import { folderOf } from "../lib/servers.mjs";

const pages = folderOf(join(import.meta.dirname, "dist"));

/**
 * @template T
 * @param {(request: Request) => Promise<Response> | Response | undefined} handle
 * @param {(page: import("playwright-core").Page) => Promise<T>} use
 * @returns {Promise<T>}
 */
export async function inPage(handle, use) {
  const site = await serveFetch(
    (request) => (new URL(request.url).pathname.startsWith("/api/") ? handle(request) : undefined),
    pages,
  );
  try {
    return await withPage(async (page) => {
      await page.goto(`${site.url}/index.html`);
      return use(page);
    });
  } finally {
    await site.stop();
  }
}
