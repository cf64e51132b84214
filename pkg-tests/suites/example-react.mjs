// The example in React, built by Vite and used in Chromium: a page that is loaded anew in the middle of an answer goes on.
import assert from "node:assert/strict";
import { join } from "node:path";
import { isAccessible } from "../lib/accessible.mjs";
import { withPage } from "../lib/browser.mjs";
import { copyExample } from "../lib/example.mjs";
import { serveFolder } from "../lib/servers.mjs";
import { startSteppingModel } from "../lib/stepping-model.mjs";
import { POLICY } from "./bundler.mjs";

const KEY = "sk-of-the-user";

export default async function exampleReact(project) {
  const { folder, run } = await copyExample(project, "www/react");
  await run("node_modules/typescript/bin/tsc", []);
  await run("node_modules/vite/bin/vite.js", ["build", "--logLevel", "warn"]);
  const site = await serveFolder(join(folder, "dist"), { "content-security-policy": `${POLICY}; img-src data:` });
  const model = await startSteppingModel({ steps: 1, tool: "set_theme", input: () => ({ theme: "dark" }) });
  try {
    await withPage((page) => chat(page, site, model));
  } finally {
    await model.stop();
    await site.stop();
  }
  return "a question, a decision and an answer over two loads of the page";
}

async function chat(page, site, model) {
  await page.goto(site.url);
  await isAccessible(page, "react-begin");
  await page.getByLabel("Address of a server").fill(model.url);
  await page.getByLabel("Key, where it wants one").fill(KEY);
  await page.getByRole("button", { name: "Begin" }).click();
  await page.getByLabel("Message").fill("Make the page dark.");
  await page.keyboard.press("Enter");
  await page.getByText("Now step 1.", { exact: true }).waitFor();
  await page.reload();
  await model.asked(1, 2);
  model.release(1);
  const allow = page.getByRole("button", { name: "Allow" });
  await allow.waitFor();
  await isAccessible(page, "react-question");
  await page.reload();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), undefined);
  await allow.click();
  model.release(2);
  await page.getByText("All is done: The page is dark now.").waitFor();
  await page.getByRole("button", { name: "Send" }).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  assert.equal(await page.getByText("Make the page dark.").count(), 1);
  assert.deepEqual([...model.keys], [`Bearer ${KEY}`]);
  await isAccessible(page, "react-answer");
}
