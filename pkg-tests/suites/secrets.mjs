// Keys that are planted in a page of a real Chromium, against a server that repeats all that it gets: none is on the console, in an
// error of the page, in what the page keeps or shows, or in a request to another origin.
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { withPage } from "../lib/browser.mjs";
import { leakIn, plainPlanted, planted } from "../lib/planted.mjs";
import { playground } from "../lib/playground-secrets.mjs";
import { copyPackage } from "../lib/project.mjs";
import { keptIn, startRepeating, watch } from "../lib/watched-page.mjs";
import { serveFolder } from "../lib/servers.mjs";

/** A token of the shim in its form, with a secret that is found. */
const SHIM_TOKEN = ["id-of-it!", "planted-token-of-a-shim-32-bytes"]
  .map((part) => Buffer.from(part).toString("base64url"))
  .join(".");

const KEYS = {
  key: planted("key"),
  gateway: planted("gateway"),
  id: plainPlanted("access"),
  secret: planted("secret"),
  session: planted("session"),
  token: SHIM_TOKEN,
};

/** How the server answers: a refusal, a failure in a stream, and a redirect to another origin. */
const ANSWERS = ["refusal", "failure", "redirect"];

export default async function secrets(project) {
  const texts = (await ownPage(project)) + (await playground());
  return `${texts} texts of two pages in Chromium without a key`;
}

/** A page as people write one. Gives how many texts were searched. */
async function ownPage(project) {
  const folder = join(project.folder, "secrets-page");
  await cp(join(project.tests, "fixtures/secrets"), folder, { recursive: true });
  await copyPackage(project, folder);
  const site = await serveFolder(folder);
  const server = await startRepeating();
  const seen = [];
  try {
    await withPage(async (page) => {
      watch(page, seen, [site.url, server.url]);
      await page.goto(`${site.url}/index.html`);
      await page.waitForFunction(() => window.runs !== undefined);
      const runs = await page.evaluate(() => Object.keys(window.runs));
      for (const run of runs) {
        for (const answer of ANSWERS) {
          server.answer = answer;
          await page.evaluate(([name, url, keys]) => window.runs[name](url, keys), [run, server.url, KEYS]);
        }
      }
      seen.push(["the page", await page.content()], ["what the page keeps", await keptIn(page)]);
      if (seen.filter(([where]) => where === "the console").length < 10) throw new Error("nothing was on the console");
      if (!seen.at(-1)[1].includes("crablet-session")) throw new Error("nothing was kept");
    }).catch((error) => {
      // The rejections that the page left alone are errors of the page, and were looked at.
      if (!/^the page threw: /.test(error.message)) throw error;
      seen.push(["errors of the page", error.message]);
    });
  } finally {
    await Promise.all([site.stop(), server.stop()]);
  }
  if (leakIn(server.asked) === undefined) throw new Error("the server got no key");
  seen.push(...server.strangers.map((request) => ["a request to another origin", request]));
  for (const [where, text] of seen) {
    const leak = leakIn(text);
    if (leak !== undefined) throw new Error(`${where} shows a key: ${leak}`);
  }
  return seen.length;
}
