// The Chromium that tests drive, and how it is started.
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** What keeps a test browser from talking to anything but the test. */
export const QUIET = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

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
