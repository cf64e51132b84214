// Checks that each row of the comparison in docs/agent.md names a test that exists: `[name](file)`, where the file has a test
// of this name or, for a suite, is there.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const docs = join(resolve(dirname(fileURLToPath(import.meta.url)), ".."), "docs");
const [, table] = readFileSync(join(docs, "agent.md"), "utf8").split("## Compared");
const rows = (table ?? "").split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| feature"));
const problems = [];
for (const row of rows) {
  const [, name, path] = /\[([^\]]+)\]\(([^)]+)\) \|$/.exec(row) ?? [];
  if (name === undefined) problems.push(`names no test: ${row}`);
  else if (!existsSync(join(docs, path))) problems.push(`${path} is not there`);
  else if (!has(readFileSync(join(docs, path), "utf8"), name, path)) problems.push(`${path} has no test ${name}`);
}
if (rows.length === 0) problems.push("docs/agent.md has no comparison");
for (const problem of problems) console.error(problem);
console.log(`${rows.length - problems.length} rows name a test`);
process.exitCode = problems.length === 0 ? 0 : 1;

function has(text, name, path) {
  if (name.startsWith('"')) return text.includes(`test(${name}`);
  const bare = name.replaceAll("`", "");
  return path.endsWith(".rs") ? text.includes(`fn ${bare}(`) : path.endsWith(bare);
}
