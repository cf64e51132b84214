/** The glue that wasm-bindgen writes, which the build wraps into a function and puts in place of `#bindings`. */
import type { Core } from "../core.js";
import type { Life } from "../life.js";

/** One instance's glue, with state of its own. `guard` is given the exports of the module and gives those that are used. */
export declare function createBindings(
  guard: (exports: WebAssembly.Exports) => WebAssembly.Exports,
  timers: Life["timers"],
): Omit<Core, "life"> & {
  initialise(source: { module_or_path: unknown }): Promise<unknown>;
  /** What was instantiated. */
  module(): WebAssembly.Module;
};
