import module from "./crablet.wasm";

/** The module as workerd compiled it: a worker may not compile one itself. */
export function defaultModule(): WebAssembly.Module {
  return module;
}
