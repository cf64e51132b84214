/** The glue that wasm-bindgen writes, which the build wraps into a function and puts in place of `#bindings`. */
import type { Core } from "../core.js";
import type { Life } from "../life.js";

/** One instance's glue, with state of its own. `guard` is given the exports of the module and gives those that are used. */
export declare function createBindings(
  guard: (exports: WebAssembly.Exports) => WebAssembly.Exports,
  timers: Life["timers"],
): Omit<Core, "life"> & {
  /** What the module imports. */
  readonly imports: WebAssembly.Imports;
  /** Takes the instance into use. */
  start(instance: WebAssembly.Instance): void;
};
