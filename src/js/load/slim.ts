/** The file beside this one, which bundlers copy and serve. Elsewhere, call `init()` with a source. */
export function defaultModule(): URL {
  return new URL("./crablet.wasm", import.meta.url);
}
