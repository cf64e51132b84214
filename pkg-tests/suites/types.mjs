// The declarations, as users with strict settings compile them: two fixtures, what real runs give, and every TypeScript block of the guides.
import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { run } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";

const COMPILER_OPTIONS = {
  noEmit: true,
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  verbatimModuleSyntax: true,
  isolatedModules: true,
  target: "es2024",
  lib: ["es2024", "esnext.disposable", "dom", "dom.iterable", "dom.asynciterable"],
  types: [],
};

const RESOLUTIONS = [
  { module: "preserve", moduleResolution: "bundler" },
  { module: "node16", moduleResolution: "node16" },
  { module: "nodenext", moduleResolution: "nodenext" },
];

export default async function types(project) {
  const folder = join(project.folder, "types");
  await cp(join(project.tests, "fixtures/types"), folder, { recursive: true });
  const blocks = await guideBlocks();
  for (const { name, code } of blocks) await writeFile(join(folder, name), code);

  const events = await run(process.execPath, [join(project.tests, "smoke/events.mjs")], { cwd: project.folder });
  await writeFile(join(folder, "events.ts"), literals(events));

  const compiler = join(project.folder, "node_modules/typescript/bin/tsc");
  // Every entry, for programs whose library is older than what the declarations name.
  const { exports } = JSON.parse(await readFile(join(project.folder, "node_modules/crablet/package.json"), "utf8"));
  const entries = Object.keys(exports).filter((entry) => exports[entry].types !== undefined);
  const imports = entries.map((entry, index) => `export * as e${index} from "${entry.replace(".", "crablet")}";`);
  const older = { ...COMPILER_OPTIONS, ...RESOLUTIONS[0], target: "es2022", lib: ["es2022", "dom"] };
  await mkdir(join(folder, "older"));
  await writeFile(join(folder, "older/entries.ts"), imports.join("\n"));
  await writeFile(join(folder, "older/tsconfig.json"), JSON.stringify({ compilerOptions: older }));
  await run(process.execPath, [compiler, "--project", join(folder, "older")], { cwd: project.folder });
  for (const resolution of RESOLUTIONS) {
    const compilerOptions = { ...COMPILER_OPTIONS, ...resolution };
    for (const config of [
      { compilerOptions, include: ["*.ts"], exclude: ["schemas.ts", "older"] },
      // The declarations of arktype want those of Node, which ours have to do without.
      { compilerOptions: { ...compilerOptions, skipLibCheck: true }, include: ["schemas.ts"] },
    ]) {
      await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
      await run(process.execPath, [compiler, "--project", folder], { cwd: project.folder });
    }
  }
  return `${entries.length} entries, the fixtures, events of real runs and ${blocks.length} blocks of the guides under ${RESOLUTIONS.length} module resolutions`;
}

/**
 * Events as constants: a member that the declarations do not know is an error there, as is one that is missing. Of the types of
 * events each is there once with each set of members.
 */
function literals(events) {
  const distinct = new Map();
  for (const line of events.trim().split("\n")) {
    const event = JSON.parse(line);
    distinct.set(`${event.type} ${Object.keys(event)}`, line);
  }
  const constants = [...distinct.values()].map((line, index) => `export const event${index}: AgentEvent = ${line};`);
  return ['import type { AgentEvent } from "crablet";', ...constants].join("\n");
}

/** Each block is a module of its own. */
async function guideBlocks() {
  const blocks = [];
  for (const file of await readdir(join(repository, "docs"))) {
    if (!file.endsWith(".md")) continue;
    const text = await readFile(join(repository, "docs", file), "utf8");
    for (const [index, [, code]] of [...text.matchAll(/^```ts\n(.*?)^```$/gms)].entries()) {
      blocks.push({ name: `${basename(file, ".md")}-${index + 1}.ts`, code });
    }
  }
  if (blocks.length === 0) throw new Error("the guides have no TypeScript blocks");
  return blocks;
}
