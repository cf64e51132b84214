// The contexts of the browser fixture, in whichever browser drives the page.
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { expectedAnswer } from "../smoke/expected.mjs";
import { expectAnswer } from "./rows.mjs";
import { serveFolder } from "./servers.mjs";

/** Nothing but the page's own modules, the model, and WebAssembly: no inline script, no eval. */
const POLICY =
  "default-src 'self'; img-src data:; script-src 'self' 'wasm-unsafe-eval'; connect-src http://127.0.0.1:*";

/** The same without WebAssembly. */
const FORBIDDING = POLICY.replace(" 'wasm-unsafe-eval'", "");

/**
 * Streams in each context of a page under a strict policy, and once under one that forbids WebAssembly.
 *
 * @param {{ folder: string }} project
 * @param {(use: (page: { goto: Function, evaluate: Function }) => Promise<unknown>) => Promise<unknown>} withPage
 * @param {RegExp} refusal the name of the error by which the browser refuses WebAssembly
 * @returns {Promise<string>} what was seen
 */
export async function streamInContexts(project, withPage, refusal) {
  await cp(join(project.folder, "node_modules/crablet"), join(project.folder, "copy/crablet"), { recursive: true });
  const model = await startModelServer({ delay: 0 });
  try {
    const answers = await answersUnder(POLICY, project, withPage, model.url);
    for (const [context, answer] of Object.entries(answers)) expectAnswer(answer, expectedAnswer, context);
    const { page: refused } = await answersUnder(FORBIDDING, project, withPage, model.url, ["page"]);
    if (!/^CrabletError internal: .*wasm-unsafe-eval/s.test(refused) || !refusal.test(refused))
      throw new Error(`under a policy without wasm-unsafe-eval: ${refused}`);
    return `a tool call and a stream in ${Object.keys(answers).join(", ")} under a strict policy; one that forbids WebAssembly is named`;
  } finally {
    await model.close();
  }
}

/** What each context answers when all files come with this policy. */
async function answersUnder(policy, project, withPage, modelUrl, wanted) {
  const site = await serveFolder(project.folder, { "content-security-policy": policy });
  try {
    return await withPage(async (tab) => {
      await tab.goto(`${site.url}/pkg-tests/fixtures/browser/`);
      await tab.waitForFunction(() => window.contexts !== undefined);
      const contexts = wanted ?? (await tab.evaluate(() => Object.keys(window.contexts)));
      const given = {};
      for (const context of contexts)
        given[context] = await tab.evaluate(({ name, url }) => window.contexts[name](url), {
          name: context,
          url: modelUrl,
        });
      return given;
    });
  } finally {
    await site.stop();
  }
}
