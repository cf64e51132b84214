// A real Firefox with a fresh profile, driven over WebDriver BiDi.
import { accessSync, constants } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { repository } from "./project.mjs";

const require = createRequire(join(repository, "pkg-tests/runtimes/package.json"));

/**
 * Opens an empty page in a new browser, and fails the callback's promise on any error of the page.
 *
 * @template T
 * @param {(page: import("puppeteer-core").Page) => Promise<T>} use
 * @returns {Promise<T>}
 */
export async function withFirefoxPage(use) {
  const { default: puppeteer } = await import(require.resolve("puppeteer-core"));
  const profile = await mkdtemp(join(tmpdir(), "crablet-firefox-"));
  const browser = await puppeteer.launch({
    browser: "firefox",
    executablePath: findFirefox(),
    headless: true,
    userDataDir: profile,
    extraPrefsFirefox: {
      // No proxy, whatever the environment says: all that is talked to is this machine.
      "network.proxy.type": 0,
      // A window that a click asked for opens also where a busy machine took its time since the click.
      "dom.disable_open_during_load": false,
    },
  });
  try {
    const page = await browser.newPage();
    const errors = [];
    page.on("pageerror", ({ message }) => {
      // What Firefox says of a request is among the errors too, and reaches the page as an error of `fetch`.
      if (!message.startsWith("Cross-Origin Request Blocked")) errors.push(message);
    });
    const result = await use(page);
    if (errors.length > 0) throw new Error(`the page threw: ${errors.join("; ")}`);
    return result;
  } finally {
    await browser.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The browser that $FIREFOX names, else the first one on the PATH. */
function findFirefox() {
  if (process.env.FIREFOX) return process.env.FIREFOX;
  for (const name of ["firefox-esr", "firefox"]) {
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
  throw new Error("no Firefox found: install one, or name one with FIREFOX=/path/to/firefox");
}
