// The tests of the facade and the smoke test, on the Node that runs this.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../lib/process.mjs";

export default async function node(project) {
  const files = [];
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
