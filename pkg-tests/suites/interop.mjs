// Other projects' official clients, providers and hooks: useChat of the AI SDK and React in Chromium, AG-UI, OpenAI.
import { copyFile, mkdir, readdir, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { run } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";

export default async function interop(project) {
  await linkPackages(project.folder, "interop");
  const folder = join(project.tests, "interop");
  const vite = join(repository, "pkg-tests/node_modules/vite/bin/vite.js");
  await run(process.execPath, [vite, "build", "--logLevel", "error"], { cwd: folder });
  const compiler = join(project.folder, "node_modules/typescript/bin/tsc");
  await run(process.execPath, [compiler, "--project", folder], { cwd: folder });
  await copyFile(join(repository, "docs/interop.md"), join(folder, "interop.md"));
  const files = (await readdir(folder)).filter((name) => name.endsWith(".test.mjs"));
  const output = await run(process.execPath, ["--test", "--test-reporter=spec", ...files], {
    cwd: folder,
    timeout: 300_000,
  });
  const count = /^ℹ pass (\d+)$/m.exec(output)?.[1];
  if (!count || count === "0") throw new Error(`no test ran:\n${output}`);
  return `${count} tests in ${files.length} files`;
}

/** The packages of a suite that has some of its own, beside those of the project. Each finds its own dependencies where it really lies. */
export async function linkPackages(folder, suite) {
  const from = join(repository, "pkg-tests", suite, "node_modules");
  const names = await readdir(from);
  const packages = await Promise.all(
    names
      .filter((name) => !name.startsWith("."))
      .map(async (name) =>
        name.startsWith("@") ? (await readdir(join(from, name))).map((inner) => join(name, inner)) : [name],
      ),
  );
  const links = packages.flat().map((name) => [join(from, name), join(folder, "node_modules", name)]);
  links.push([
    join(repository, "pkg-tests/node_modules/playwright-core"),
    join(folder, "node_modules/playwright-core"),
  ]);
  for (const [target, path] of links) {
    await mkdir(dirname(path), { recursive: true });
    await rm(path, { force: true });
    await symlink(target, path, "dir");
  }
}
