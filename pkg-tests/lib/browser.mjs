// A real Chromium with a fresh profile.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { findChromium, QUIET } from "../../www/demo/chromium.mjs";

/**
 * Opens an empty page in a new browser, and fails the callback's promise on any error of the page.
 *
 * @template T
 * @param {(page: import("playwright-core").Page, profile: string) => Promise<T>} use gets the data directory too
 * @param {{ extension?: string, args?: string[] }} [options] the folder of an extension to load; further arguments
 * @returns {Promise<T>}
 */
export async function withPage(use, { extension, args = [] } = {}) {
  const profile = await mkdtemp(join(tmpdir(), "crablet-chromium-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: findChromium(),
    headless: true,
    args: [
      ...QUIET,
      ...args,
      ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
      ...(extension === undefined ? [] : [`--disable-extensions-except=${extension}`, `--load-extension=${extension}`]),
    ],
  });
  try {
    const page = await context.newPage();
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    const result = await use(page, profile);
    if (errors.length > 0) throw new Error(`the page threw: ${errors.join("; ")}`);
    return result;
  } finally {
    await context.close();
    await rm(profile, { recursive: true, force: true });
  }
}
