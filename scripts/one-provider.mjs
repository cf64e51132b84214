// Builds pkg-tests/one-provider, a Rust program with an agent of one provider, as docs/rust.md says: dist/one-provider.wasm, whose
// size is a row of scripts/size.mjs.
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build, optimise } from "./wasm.mjs";

const dist = join(resolve(dirname(fileURLToPath(import.meta.url)), ".."), "dist");
const folder = join(dist, "one-provider");
build({ crate: "pkg-tests/one-provider", folder, name: "one_provider" });
optimise(join(folder, "one_provider_bg.wasm"), join(dist, "one-provider.wasm"), join(dist, "one-provider.symbols"));
