// How a module is built small (docs/decisions/0034): that of the package, and a Rust program with one provider (docs/rust.md).
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");

/**
 * Only what is smaller than its call is inlined, `Debug` writes nothing, SHA-256 is a loop, a panic is a trap without a
 * message, and the standard library is built the same way. The flags that are not stable yet are those of the pinned compiler, which
 * `RUSTC_BOOTSTRAP` lets it take.
 */
const forSize = {
  flags: [
    ...["-Cllvm-args=-inline-threshold=5", "--cfg=crablet_small", '--cfg=sha2_backend_soft="compact"'],
    ...["-Zunstable-options", "-Cpanic=immediate-abort", "-Zfmt-debug=none", "-Zlocation-detail=none"],
    // A stack of 896 KiB in place of 1 MiB, so that the addresses of the data behind it take three bytes and not four.
    "-Clink-arg=-zstack-size=917504",
  ],
  cargo: ["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"],
  variables: { RUSTC_BOOTSTRAP: "1" },
};

/**
 * The first KiB of memory is the far end of the stack, so no pointer with a small offset wraps around; and the memory is the
 * module's own, so it begins with zeros. Control flow is taken apart and laid out anew, and all is optimised twice. Functions
 * with similar names are similar, and compress best beside each other.
 */
const passes = [
  ...["--low-memory-unused", "--zero-filled-memory", "--flatten", "--rereloop", "-Oz", "-Oz"],
  "--reorder-functions-by-name",
];

/** Builds a crate with its glue into `folder`, as `NAME_bg.wasm` and `NAME.js`. The feature section stays in: wasm-opt reads from it what it may use. */
export function build({ crate, folder, name, isDev, features = [] }) {
  const profile = isDev ? ["--dev"] : ["--profile", "wasm"];
  const [flags, cargo, variables] = isDev ? [[], [], {}] : [forSize.flags, forSize.cargo, forSize.variables];
  run(
    "wasm-pack",
    [
      ...["--log-level", "warn", "build", join(root, crate), "--target", "web", "--no-pack", "--no-opt"],
      ...["--mode", "no-install", "--no-gitignore", "--out-dir", folder, "--out-name", name],
      ...[...profile, "--", ...cargo, ...features.flatMap((feature) => ["--features", feature])],
    ],
    { ...variables, RUSTFLAGS: [...flags, ...remappedPaths()].join(" ") },
  );
}

/** Makes a module that was built smaller. The names of its functions are written beside it, for scripts/size.mjs. */
export function optimise(built, optimised, symbols) {
  const stripped = [`--symbolmap=${symbols}`, "--strip-debug", "--strip-producers"];
  run(join(root, "src/js/node_modules/.bin/wasm-opt"), [...passes, ...stripped, built, "-o", optimised]);
}

/** Panic messages name source files: by names that say nothing of the machine that built them. */
function remappedPaths() {
  const registries = join(process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "registry/src");
  const folders = existsSync(registries) ? readdirSync(registries).map((name) => join(registries, name)) : [];
  return [...folders.map((folder) => `--remap-path-prefix=${folder}=crates`), `--remap-path-prefix=${root}=crablet`];
}

function run(command, args, variables = {}) {
  const output = ["ignore", "inherit", "inherit"];
  execFileSync(command, args, { cwd: root, stdio: output, env: { ...process.env, ...variables } });
}
