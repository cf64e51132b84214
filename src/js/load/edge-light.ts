import module from "./crablet.wasm?module";

/** The module as the edge runtime compiled it: it may not compile one itself. */
export function defaultModule(): WebAssembly.Module {
  return module;
}
