// What users store and what their programs read: the events of scripted runs, the sessions they leave and how stores keep them,
// against files that are committed; and what older versions wrote, which has to go on.
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { holdGolden } from "../../scripts/golden.mjs";
import * as indexedDb from "../golden/indexed-db.mjs";
import { withPage } from "../lib/browser.mjs";
import { run } from "../lib/process.mjs";
import { copyPackage, repository } from "../lib/project.mjs";
import { serveFolder } from "../lib/servers.mjs";

const OLDER = join(repository, "pkg-tests/golden/older");

export default async function golden(project) {
  const made = (name, ...args) =>
    run(process.execPath, [join(project.tests, `golden/${name}.mjs`), ...args], { cwd: project.folder });
  const folders = new Map([
    ["events", new Map()],
    ["sessions", new Map()],
    ["kept", new Map()],
  ]);
  for (const line of `${await made("runs")}${await made("kept")}`.trim().split("\n")) {
    const { file, text } = JSON.parse(line);
    const [folder, name] = file.split("/");
    folders.get(folder).set(name, text);
  }
  const failures = [];
  const restored = await restoreOlder(project).catch((error) => failures.push(error.message));
  await made("kept", OLDER).catch((error) => failures.push(error.message));
  folders.get("kept").set("indexed-db.json", await inChromium(project, failures));
  for (const [folder, made] of folders) {
    try {
      holdGolden(join(repository, "pkg-tests/golden", folder), made);
    } catch (error) {
      failures.push(`${folder}/\n${error.message}`);
    }
  }
  if (failures.length > 0) throw new Error(failures.join("\n\n"));
  return `${folders.get("events").size} event streams and the sessions they leave, ${folders.get("kept").size} places where things are kept; ${restored} older sessions go on`;
}

/** What IndexedDB keeps. What older versions kept there goes on. */
async function inChromium(project, failures) {
  const folder = join(project.folder, "golden-page");
  await copyPackage(project, folder);
  await cp(join(project.tests, "golden/conversations.mjs"), join(folder, "conversations.mjs"));
  await writeFile(join(folder, "index.html"), "<!doctype html><title>golden</title>");
  const site = await serveFolder(folder);
  try {
    return await withPage(async (page) => {
      await page.goto(`${site.url}/index.html`);
      const kept = await indexedDb.kept(page);
      for (const name of await readdir(OLDER)) {
        if (!name.startsWith("indexed-db")) continue;
        const wrong = await indexedDb.goesOn(page, JSON.parse(await readFile(join(OLDER, name), "utf8")));
        if (wrong !== undefined) failures.push(`${name}: ${wrong}`);
      }
      return `${JSON.stringify(kept, null, 2)}\n`;
    });
  } finally {
    await site.stop();
  }
}

/** The sessions that were committed before this run, of every version of the format. */
async function restoreOlder(project) {
  const folder = join(project.folder, "older");
  await cp(join(repository, "tests/session/golden"), folder, {
    recursive: true,
    filter: (path) => !path.endsWith("events.jsonl"),
  });
  const args = [join(project.tests, "golden/restore.mjs"), folder, join(project.tests, "golden/sessions")];
  const output = await run(process.execPath, args, { cwd: project.folder });
  return output.trim().split("\n").length;
}
