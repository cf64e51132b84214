// Asks for known weaknesses: of the crates in Cargo.lock (RustSec, by cargo-deny), and of what each package-lock.json names (the npm
// registry). One of a crate fails, and so does one that is high or critical of a package that ships or runs in a page; one of a
// tool is listed. Who does not answer is reported, and that is no failure: a build must not depend on it.
import { execFile } from "node:child_process";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const run = promisify(execFile);

/** Whose dependencies, those for development aside, are in the package, in a page, or in what people copy. */
const SHIPPED = ["src/js", "www", "www/extension", "www/react", "www/worker"];
const SERIOUS = ["high", "critical"];
/** How many locks are asked about at once. */
const AT_ONCE = 4;
/** How long an audit may take, and all of them together: whoever is not reached by then is not asked. */
const LIMIT_MS = 20_000;
const WHOLE_LIMIT_MS = 90_000;

const { stdout } = await run("git", ["ls-files", "*package-lock.json"], { cwd: root });
const folders = stdout.trim().split("\n").map(dirname);
const missing = SHIPPED.filter((folder) => !folders.includes(folder));
if (missing.length > 0)
  throw new Error(`no package-lock.json in ${missing.join(", ")}: correct SHIPPED in scripts/audit.mjs`);

const deadline = AbortSignal.timeout(WHOLE_LIMIT_MS);
const failures = [];
let answered = 0;
const queue = folders.flatMap((folder) => [
  { folder, isShipped: false },
  ...(SHIPPED.includes(folder) ? [{ folder, isShipped: true }] : []),
]);
await Promise.all(Array.from({ length: AT_ONCE }, work));
await auditCrates();
for (const failure of failures) console.error(failure);
console.log(`npm: ${answered} of ${folders.length + SHIPPED.length} audits answered`);
process.exitCode = failures.length > 0 ? 1 : 0;

async function work() {
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const { folder, isShipped } = next;
    const what = `${folder}${isShipped ? ", what ships" : ""}`;
    const report = await audit(folder, isShipped);
    if (report.vulnerabilities === undefined) {
      console.log(`no answer for ${what}: ${report.message ?? report.error?.summary ?? "it said nothing"}`);
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

async function auditCrates() {
  const args = ["--format", "json", "check", "advisories"];
  const options = { cwd: root, timeout: LIMIT_MS, signal: deadline, maxBuffer: 16 * 1024 * 1024 };
  const { stderr = "", code } = await run("cargo-deny", args, options).catch((error) => error);
  const lines = stderr.split("\n").filter((line) => line.startsWith("{"));
  const told = lines.map((line) => JSON.parse(line)).filter(({ type }) => type === "diagnostic");
  const found = told.filter(({ fields }) => fields.severity === "error");
  failures.push(...found.map(({ fields }) => `Cargo.lock: ${fields.message}`));
  if (code && found.length === 0) console.log(`no answer for Cargo.lock: ${stderr.slice(0, 300)}`);
}

/** What npm says, which exits with 1 when it has found something, as when it has found nobody to ask. */
async function audit(folder, isShipped) {
  const omit = isShipped ? ["--omit=dev"] : [];
  const args = ["audit", "--json", "--package-lock-only", "--fetch-retries=0", ...omit];
  const options = { cwd: join(root, folder), timeout: LIMIT_MS, signal: deadline, maxBuffer: 16 * 1024 * 1024 };
  const { stdout } = await run("npm", args, options).catch((error) => error);
  try {
    return JSON.parse(stdout);
  } catch {
    return { message: "npm was not done in time, or printed no JSON" };
  }
}
