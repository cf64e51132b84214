// Asks for known weaknesses: of the crates in Cargo.lock (RustSec, by cargo-deny), and of what each package-lock.json names (the npm
// registry). One of a crate fails, and so does one that is high or critical of a package that ships or runs in a page; one of a
// tool is listed. What could not be looked at, because nobody answered, is told for each, and is no failure: a build must not depend on it.
//
//   --limit SECONDS   how long one audit may take (default: 20); all of them together may take four and a half times that
import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");

/** Whose dependencies, those for development aside, are in the package, in a page, or in what people copy. */
const SHIPPED = ["src/js", "www", "www/extension", "www/react", "www/worker"];
const SERIOUS = ["high", "critical"];
/** How many locks are asked about at once. */
const AT_ONCE = 4;
/** The most that is shown of what a program said instead of an answer, in UTF-16 units. */
const MAX_SHOWN = 300;
/** How long all audits together may take, in limits of one: whoever is not reached by then is not asked. */
const WHOLE_LIMITS = 4.5;

const { values } = parseArgs({ options: { limit: { type: "string", default: "20" } } });
const limit = Number(values.limit);
if (!(limit > 0)) throw new Error(`--limit ${values.limit}: give a number of seconds above 0`);

const locks = await run("git", ["ls-files", "*package-lock.json"], root);
const folders = locks.stdout.trim().split("\n").map(dirname);
const missing = SHIPPED.filter((folder) => !folders.includes(folder));
if (missing.length > 0)
  throw new Error(`no package-lock.json in ${missing.join(", ")}: correct SHIPPED in scripts/audit.mjs`);

const deadline = AbortSignal.timeout(limit * WHOLE_LIMITS * 1_000);
const failures = [];
let answered = 0;
const queue = folders.flatMap((folder) => [
  { folder, isShipped: false },
  ...(SHIPPED.includes(folder) ? [{ folder, isShipped: true }] : []),
]);
const asked = queue.length;
// The crates are asked about beside the packages, so that a registry of npm that hangs does not use up their time.
const [areCratesLookedAt] = await Promise.all([auditCrates(), ...Array.from({ length: AT_ONCE }, work)]);
for (const failure of failures) console.error(failure);
const left = asked - answered;
console.log(`npm: ${answered} of ${asked} audits answered${left > 0 ? `, ${left} not looked at` : ""}`);
console.log(`crates: ${areCratesLookedAt ? "looked at" : "not looked at"}`);
process.exitCode = failures.length > 0 ? 1 : 0;

async function work() {
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const { folder, isShipped } = next;
    const what = `${folder}${isShipped ? ", what ships" : ""}`;
    const { report, why } = await audit(folder, isShipped);
    if (report?.vulnerabilities === undefined) {
      console.log(`not looked at: ${what}: ${why}`);
      continue;
    }
    answered += 1;
    for (const { name, severity, via } of Object.values(report.vulnerabilities)) {
      const why = via.map((cause) => cause.title ?? cause).join("; ");
      const line = `${what}: ${name} (${severity}): ${why}`;
      if (isShipped && SERIOUS.includes(severity)) failures.push(line);
      else if (isShipped || SERIOUS.includes(severity)) console.log(line);
    }
  }
}

/** Whether cargo-deny could look. */
async function auditCrates() {
  const { stderr, code, why } = await run("cargo-deny", ["--format", "json", "check", "advisories"], root, deadline);
  const lines = stderr.split("\n").filter((line) => line.startsWith("{"));
  const told = lines.map(parsed).filter((line) => line?.type === "diagnostic");
  const found = told.filter(({ fields }) => fields.severity === "error");
  failures.push(...found.map(({ fields }) => `Cargo.lock: ${fields.message}`));
  if (code === 0 || found.length > 0) return true;
  console.log(`not looked at: Cargo.lock: ${why ?? (stderr.slice(0, MAX_SHOWN).trim() || "cargo-deny said nothing")}`);
  return false;
}

/** What npm says, which exits with 1 when it has found something, as when it has found nobody to ask. */
async function audit(folder, isShipped) {
  const omit = isShipped ? ["--omit=dev"] : [];
  const args = ["audit", "--json", "--package-lock-only", "--fetch-retries=0", ...omit];
  const { stdout, why } = await run("npm", args, join(root, folder), deadline);
  const report = parsed(stdout);
  const said = report?.message ?? report?.error?.summary;
  return { report, why: why ?? said ?? "npm printed no answer that can be read" };
}

function parsed(json) {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/**
 * Runs a program with all that it starts, no longer than the limit. Gives what it printed and its exit code; or `why` it did not come to
 * its end.
 */
async function run(program, args, cwd, signal) {
  if (signal?.aborted)
    return { stdout: "", stderr: "", why: "no time was left after those before it that did not answer" };
  // A group of its own: what the program started may hold its pipes open, and would be waited for.
  const child = spawn(program, args, { cwd, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const printed = Promise.all([text(child.stdout), text(child.stderr)]);
  let why;
  const end = () => {
    why ??= `${program} had no answer within ${limit} s, and was ended`;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // All of them have ended by themselves at this moment.
    }
  };
  try {
    const ended = once(child, "close");
    const timer = setTimeout(end, limit * 1_000);
    signal?.addEventListener("abort", end, { once: true });
    const [code] = await ended.finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
    });
    const [stdout, stderr] = await printed;
    return { stdout, stderr, code, why };
  } catch (error) {
    return { stdout: "", stderr: "", why: `${program} could not be started: ${error.message}` };
  }
}
