/** Where an entry takes the module from: one file of `load/`, chosen by the build. */
declare module "#module" {
  export function defaultModule(): Promise<WebAssembly.Module> | WebAssembly.Module | URL;
}

/** The module as deflate-raw in base64: written by the build. */
declare module "#inlined" {
  export const base64: string;
}

declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}

declare module "*.wasm?module" {
  const module: WebAssembly.Module;
  export default module;
}
