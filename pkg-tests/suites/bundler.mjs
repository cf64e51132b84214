// A Vite build without any configuration, loaded in a real Chromium under a strict content security policy.
import { join } from "node:path";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { withPage } from "../lib/browser.mjs";
import { run } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";
import { serveFolder } from "../lib/servers.mjs";
import { expectedAnswer } from "../smoke/expected.mjs";

/** No inline script, no eval; only wasm may be compiled. */
export const POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src http://127.0.0.1:*";

export default async function bundler(project) {
  const page = await servePage(project);
  const model = await startModelServer({ delay: 0 });
  try {
    const answer = await withPage(async (tab) => {
      await tab.goto(page.url);
      return tab.evaluate((url) => window.ask(url), model.url);
    });
    if (answer !== expectedAnswer) throw new Error(`not the answer: ${answer}`);
  } finally {
    await model.close();
    await page.stop();
  }
  return "a Vite build calls a tool and streams an answer in Chromium";
}

/** Builds the fixture page and serves it. */
export async function servePage(project) {
  const folder = join(project.tests, "fixtures/vite");
  const vite = join(repository, "pkg-tests/node_modules/vite/bin/vite.js");
  await run(process.execPath, [vite, "build", "--logLevel", "warn"], { cwd: folder });
  return serveFolder(join(folder, "dist"), { "content-security-policy": POLICY });
}
