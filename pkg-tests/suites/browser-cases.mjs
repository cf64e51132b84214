// The cases of the area browser-edge in Chromium. None may be without a test.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { withPage } from "../lib/browser.mjs";
import { browserCases } from "../lib/browser-cases.mjs";
import { repository } from "../lib/project.mjs";
import { runRows } from "../lib/rows.mjs";

/** Cases that a suite of their own is about. */
const ELSEWHERE = {
  "179-preflight-blocked-header": "cors",
  "180-service-worker-death": "durable",
  "182-csp-wasm": "browser",
};

export default async function cases(project) {
  const rows = browserCases(project, withPage, { rounds: 1_000 });
  for (const name of await namesOfArea()) {
    if (!(`case ${name}` in rows) && !(name in ELSEWHERE)) throw new Error(`nothing tests the case ${name}`);
  }
  return runRows(rows);
}

async function namesOfArea() {
  const folder = join(repository, "tests/cases");
  const names = [];
  for (const file of await readdir(folder)) {
    if (!file.endsWith(".json")) continue;
    const { id, area } = JSON.parse(await readFile(join(folder, file), "utf8"));
    if (area === "browser-edge") names.push(id);
  }
  if (names.length === 0) throw new Error(`${folder} has no case of the area`);
  return names;
}
