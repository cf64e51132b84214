// Runs suites against the packed tarball of dist/: `node pkg-tests/run.mjs [SUITE...]`, all of them by default. A line per
// suite, then `N passed, N failed`.
import { createProject } from "./lib/project.mjs";

/** In the order in which they run. Each gets the project and returns a line about what it saw, or throws. */
const SUITES = [
  "manifest",
  "types",
  "node",
  "readme",
  "shim",
  "workerd",
  "browser",
  "browser-cases",
  "secrets",
  "files",
  "durable",
  "bundler",
  "cors",
  "oauth",
  "native-messaging",
  "live",
  "expose",
  "example-extension",
  "example-worker",
  "fleet",
  "example-react",
  "example-programs",
  "hand-over",
  "quick-start",
  "golden",
  "runtimes",
  "bundlers",
  "firefox",
  "interop",
  "agent-service",
  "nats",
  "scale",
];

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !SUITES.includes(name));
if (unknown.length > 0) {
  console.error(`unknown suite: ${unknown.join(", ")}. There are: ${SUITES.join(", ")}`);
  process.exit(2);
}

const project = await createProject();
let passed = 0;
let failed = 0;
try {
  for (const name of SUITES) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const started = performance.now();
    const seconds = () => `${((performance.now() - started) / 1000).toFixed(1)} s`;
    try {
      // Only what is asked for is loaded: suites need packages of their own.
      const { default: suite } = await import(`./suites/${name}.mjs`);
      const seen = await suite(project);
      passed += 1;
      console.log(`ok ${name} (${seconds()}): ${seen}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name} (${seconds()})\n${error.stack ?? error}`);
    }
  }
} finally {
  await project.remove();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
