// Holds what was made against files that are committed. With CRABLET_WRITE_GOLDEN=1 the files are written instead; git shows the
// difference then, which is to be read before it is committed.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const LINES_SHOWN = 60;

/**
 * @param {string} folder the folder of the golden files, which holds nothing else
 * @param {Map<string, string>} made the text of each file, by its name
 * @returns {string} what was done or seen, in a few words; throws where the two differ
 */
export function holdGolden(folder, made) {
  if (process.env.CRABLET_WRITE_GOLDEN) {
    rmSync(folder, { recursive: true, force: true });
    write(folder, made);
    return `${made.size} files written: look at \`git diff\``;
  }
  const scratch = mkdtempSync(join(tmpdir(), "crablet-golden-"));
  try {
    write(join(scratch, "made"), made);
    write(join(scratch, "golden"), read(folder));
    const options = ["diff", "--no-index", "--no-color", "--unified=0", "golden", "made"];
    const { status, stdout, stderr, error } = spawnSync("git", options, { cwd: scratch, encoding: "utf8" });
    if (error) throw error;
    if (status === 0) return `${made.size} files as they are committed`;
    if (status !== 1) throw new Error(`git diff failed: ${stderr}`);
    throw new Error(`${differenceOf(stdout)}\n${HOW_TO_ACCEPT}`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The lines that were added and taken away, under the names of their files. */
function differenceOf(diff) {
  const lines = diff.split("\n").filter((line) => /^[+-](?!\+\+ \/dev|-- \/dev|-- a\/)/.test(line));
  const more = lines.length - LINES_SHOWN;
  return [...lines.slice(0, LINES_SHOWN), ...(more > 0 ? [`… and ${more} lines more`] : [])].join("\n");
}

const HOW_TO_ACCEPT = `
What others build on is not what is committed ("+" is new, "-" is gone). When this is meant, run "make golden-accept", read the
difference with "git diff", commit it with the change, and say in CHANGELOG.md what it means for users. docs/releasing.md says which
differences a version may have. Listings are sorted: in a conflict of merging take either side, and accept again.`;

function write(folder, files) {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of files) writeFileSync(join(folder, name), text);
}

function read(folder) {
  let names = [];
  try {
    names = readdirSync(folder);
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
  return new Map(names.map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}
