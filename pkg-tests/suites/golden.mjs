// What users store and what their programs read: the events of scripted runs and the sessions they leave, against files that are
// committed; and sessions that older versions wrote, which have to go on.
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { holdGolden } from "../../scripts/golden.mjs";
import { run } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";

export default async function golden(project) {
  const output = await run(process.execPath, [join(project.tests, "golden/runs.mjs")], { cwd: project.folder });
  const folders = new Map([
    ["events", new Map()],
    ["sessions", new Map()],
  ]);
  for (const line of output.trim().split("\n")) {
    const { file, text } = JSON.parse(line);
    const [folder, name] = file.split("/");
    folders.get(folder).set(name, text);
  }
  const failures = [];
  const restored = await restoreOlder(project).catch((error) => failures.push(error.message));
  for (const [folder, made] of folders) {
    try {
      holdGolden(join(repository, "pkg-tests/golden", folder), made);
    } catch (error) {
      failures.push(`${folder}/\n${error.message}`);
    }
  }
  if (failures.length > 0) throw new Error(failures.join("\n\n"));
  return `${folders.get("events").size} event streams and the sessions they leave; ${restored} older ones go on`;
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
