// The tests of the facade, the smoke test and those that docs/testing.md shows, on the Node that runs this.
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";
import { readSnippets } from "../lib/snippets.mjs";

export default async function node(project) {
  const files = await writeGuide(join(project.tests, "guide"));
  for (const folder of ["smoke", "facade"]) {
    const names = await readdir(join(project.tests, folder)).catch(() => []);
    files.push(...names.filter((name) => name.endsWith(".test.mjs")).map((name) => join(project.tests, folder, name)));
  }
  const output = await run(process.execPath, ["--test", "--test-reporter=spec", ...files], {
    cwd: project.folder,
    timeout: 300_000,
  });
  const count = /^ℹ pass (\d+)$/m.exec(output)?.[1];
  if (!count || count === "0") throw new Error(`no test ran:\n${output}`);
  return `${count} tests in ${files.length} files on Node ${process.versions.node}`;
}

/** Each block of the guide is a file of tests. */
async function writeGuide(folder) {
  await mkdir(folder);
  const files = [];
  for (const [name, code] of await readSnippets(join(repository, "docs/testing.md"))) {
    const file = join(folder, `${name}.test.mjs`);
    await writeFile(file, code);
    files.push(file);
  }
  return files;
}
