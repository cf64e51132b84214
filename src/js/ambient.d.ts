/** Where an entry takes the module from: one file of `load/`, chosen by the build. */
declare module "#module" {
  export function defaultModule(): Promise<WebAssembly.Module> | WebAssembly.Module | URL;
}

/** The module as text: written by the build. */
declare module "#inlined" {
  export const packed: import("./load/unpack.js").Packed;
}

declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}

declare module "*.wasm?module" {
  const module: WebAssembly.Module;
  export default module;
}

// What `crablet/react` uses of React, so that building the package does not need it.
declare module "react" {
  export function useEffect(effect: () => void | (() => void), dependencies?: readonly unknown[]): void;
  export function useMemo<Value>(make: () => Value, dependencies: readonly unknown[]): Value;
  export function useRef<Value>(initial: Value): { current: Value };
  export function useState<Value>(initial: Value | (() => Value)): [Value, (value: Value) => void];
  export function useSyncExternalStore<Value>(
    subscribe: (listener: () => void) => () => void,
    getSnapshot: () => Value,
    getServerSnapshot?: () => Value,
  ): Value;
}
