// A real Chromium with a fresh profile.
import { accessSync, constants } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";

/** What keeps a test browser from talking to anything but the test. */
const QUIET = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/**
 * Opens an empty page in a new browser, and fails the callback's promise on any error of the page.
 *
 * @template T
 * @param {(page: import("playwright-core").Page) => Promise<T>} use
 * @returns {Promise<T>}
 */
export async function withPage(use) {
  const profile = await mkdtemp(join(tmpdir(), "crablet-chromium-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: findChromium(),
    headless: true,
    args: [...QUIET, ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])],
  });
  try {
    const page = await context.newPage();
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    const result = await use(page);
    if (errors.length > 0) throw new Error(`the page threw: ${errors.join("; ")}`);
    return result;
  } finally {
    await context.close();
    await rm(profile, { recursive: true, force: true });
  }
}

/** The browser that $CHROMIUM names, else the first one on the PATH. */
export function findChromium() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    for (const folder of (process.env.PATH ?? "").split(delimiter)) {
      const path = join(folder, name);
      try {
        accessSync(path, constants.X_OK);
        return path;
      } catch {
        // Not in this folder.
      }
    }
  }
  throw new Error("no Chromium found: install one, or name one with CHROMIUM=/path/to/chromium");
}
