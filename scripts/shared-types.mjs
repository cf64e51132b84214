// Compares the words that both sides share, which are written by hand in Rust and in TypeScript: types of events, kinds of error,
// reasons to stop; and that docs/errors.md explains each kind. What the events hold is compared by pkg-tests/suites/types.mjs, with
// events of real runs.
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");

/** What stands between two marks of a file. */
function section(file, begin, end) {
  const text = readFileSync(join(root, file), "utf8");
  const from = text.indexOf(begin);
  const to = text.indexOf(end, from);
  if (from < 0 || to < 0)
    throw new Error(`${file} has no part from "${begin}" to "${end}": adapt scripts/shared-types.mjs`);
  return text.slice(from, to);
}

const words = (text, pattern) => [...text.matchAll(pattern)].map(([, word]) => word);
const union = (text) => words(text, /"([a-z-]+)"/g);

const vocabularies = {
  "types of events": {
    rust: words(section("src/agent/event_json.rs", "pub const fn name", "\n    }\n"), /=> "([a-z-]+)"/g),
    typescript: words(
      section("src/js/event.ts", "export type AgentEvent", "\n  );"),
      /readonly type: ([^;}]+)/g,
    ).flatMap(union),
  },
  "kinds of error": {
    rust: words(section("src/error.rs", "error_kinds! {\n", "\n}\n"), /= "([a-z-]+)"/g),
    typescript: union(section("src/js/error.ts", "export type ErrorKind", ";")),
  },
  "kinds of error, as docs/errors.md explains them": {
    rust: words(section("src/error.rs", "error_kinds! {\n", "\n}\n"), /= "([a-z-]+)"/g),
    typescript: words(section("docs/errors.md", "\n## Kinds", "| `internal`"), /^\| `([a-z-]+)`/gm).concat("internal"),
  },
  "reasons to stop": {
    rust: [
      ...words(section("src/model/message.rs", "impl StopReason", "\n}\n"), /=> "([a-z-]+)"/g),
      ...words(section("src/agent/event.rs", "Self::Model(reason) => reason.as_str()", "}\n"), /=> "([a-z-]+)"/g),
    ],
    // What the result of a run says that waits for a person; it has no end yet.
    typescript: union(section("src/js/message.ts", "export type StopReason", ";")).filter(
      (word) => word !== "suspended",
    ),
  },
};

let isSame = true;
for (const [name, { rust, typescript }] of Object.entries(vocabularies)) {
  const [here, there] = [new Set(rust), new Set(typescript)];
  if (here.size === 0) throw new Error(`no ${name} found`);
  const missing = [...here].filter((word) => !there.has(word));
  const unknown = [...there].filter((word) => !here.has(word));
  if (missing.length + unknown.length === 0) continue;
  isSame = false;
  console.error(
    `${name}: TypeScript, or the guide, lacks [${missing.join(", ")}], and has [${unknown.join(", ")}] that Rust lacks`,
  );
}
if (isSame) console.log("Rust and TypeScript have the same words");
process.exitCode = isSame ? 0 : 1;
