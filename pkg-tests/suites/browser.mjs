// The package without a bundler in every context of a browser, and under a policy that forbids WebAssembly.
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { withPage } from "../lib/browser.mjs";
import { serveFolder } from "../lib/servers.mjs";

export default async function browser(project) {
  const folder = join(project.tests, "fixtures/browser");
  await cp(join(project.folder, "node_modules/crablet"), join(folder, "crablet"), {
    recursive: true,
    dereference: true,
  });
  const allowed = await answers(folder, "script-src 'self' 'wasm-unsafe-eval'");
  for (const [context, answer] of Object.entries(allowed)) {
    if (answer !== "hello") throw new Error(`${context}: ${answer}`);
  }
  const { page: refused } = await answers(folder, "script-src 'self'", ["page"]);
  if (!/^CrabletError internal: .*wasm-unsafe-eval.*; cause: CompileError$/s.test(refused)) {
    throw new Error(`under a policy without wasm-unsafe-eval: ${refused}`);
  }
  return `${Object.keys(allowed).join(", ")}; a policy that forbids WebAssembly is named`;
}

/** What each context answers when its files come with this policy. */
async function answers(folder, policy, wanted) {
  const site = await serveFolder(folder, { "content-security-policy": policy });
  try {
    return await withPage(async (tab) => {
      await tab.goto(`${site.url}/index.html`);
      const contexts = wanted ?? (await tab.evaluate(() => Object.keys(window.contexts)));
      const given = {};
      for (const context of contexts) given[context] = await tab.evaluate((name) => window.contexts[name](), context);
      return given;
    });
  } finally {
    await site.stop();
  }
}
