// The public items of the crate as sorted lines, made by cargo-public-api from rustdoc's JSON: what the core has alone, and what
// groups of features add to it.
import { execFileSync } from "node:child_process";
import { join } from "node:path";

/** Each group has the features of those before it, and its listing only what they have not. */
const GROUPS = [
  { name: "core", adds: () => [] },
  { name: "models", adds: () => ["models", "catalog"] },
  { name: "mcp", adds: () => ["mcp", "mcp-server", "oauth", "shim"] },
  // Every other feature that there is, so that a new one is listed without a word here.
  { name: "native", adds: (all) => all.filter((feature) => feature !== "web" && feature !== "default") },
];
/** The features of a group by itself, on the target that it is for. */
const WEB = { features: ["models", "mcp", "oauth", "web"], target: "wasm32-unknown-unknown" };

/** What is the same for every type of a kind, or follows from the fields. */
const OMITTED = "blanket-impls,auto-trait-impls";

/** A map from the name of a file to its text. */
export function listCrate(root) {
  const listings = new Map();
  const known = new Set();
  const all = featuresOf(root);
  let features = [];
  const add = (name, items) => {
    const own = items.filter((item) => !known.has(item));
    for (const item of own) known.add(item);
    listings.set(`${name}.txt`, own.map((item) => `${item}\n`).join(""));
  };
  for (const { name, adds } of GROUPS) {
    features = [...new Set([...features, ...adds(all)])];
    add(name, itemsOf(root, features));
  }
  add("web", itemsOf(root, WEB.features, WEB.target));
  return listings;
}

function featuresOf(root) {
  const { packages } = JSON.parse(output(root, "cargo", ["metadata", "--format-version=1", "--no-deps"]));
  return Object.keys(packages.find(({ name }) => name === "crablet").features);
}

function itemsOf(root, features, target) {
  const at = target === undefined ? [] : ["--target", target];
  const chosen = ["--no-default-features", "--features", features.join()];
  // The JSON of rustdoc is not stable: its form is that of the pinned compiler, and the version of the tool goes with it.
  const json = ["-Zunstable-options", "--output-format=json", "--cap-lints=allow"];
  output(root, "cargo", ["rustdoc", "--quiet", "--package=crablet", "--lib", ...chosen, ...at, "--", ...json], {
    RUSTDOC: join(root, "scripts/api/rustdoc.sh"),
  });
  const file = join(root, "target", target ?? "", "doc/crablet.json");
  const listed = output(root, "cargo-public-api", [
    "public-api",
    "--rustdoc-json",
    file,
    "--omit",
    OMITTED,
    "--color=never",
  ]);
  return [...new Set(listed.trim().split("\n"))].sort();
}

function output(root, program, args, variables = {}) {
  return execFileSync(program, args, {
    cwd: root,
    env: { ...process.env, ...variables },
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
}
