// The declarations, as users with strict settings compile them.
import { join } from "node:path";
import { run } from "../lib/process.mjs";

const STRICT = [
  "--noEmit",
  "--strict",
  "--noUncheckedIndexedAccess",
  "--exactOptionalPropertyTypes",
  "--verbatimModuleSyntax",
  "--isolatedModules",
  "--target",
  "es2024",
  "--lib",
  "es2024,esnext.disposable,dom,dom.iterable,dom.asynciterable",
  "--types",
  "",
];
const RESOLUTIONS = [
  ["--module", "preserve", "--moduleResolution", "bundler"],
  ["--module", "nodenext", "--moduleResolution", "nodenext"],
];

export default async function types(project) {
  for (const resolution of RESOLUTIONS) {
    const file = join(project.tests, "fixtures/types/usage.ts");
    const compiler = join(project.folder, "node_modules/typescript/bin/tsc");
    await run(process.execPath, [compiler, ...STRICT, ...resolution, file], { cwd: project.folder });
  }
  return `${RESOLUTIONS.length} module resolutions`;
}
