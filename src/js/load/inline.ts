import { packed } from "#inlined";
import { unpack } from "./unpack.js";

/** Unpacks the module that is part of this file: works in every bundler, service worker and extension without configuration. */
export function defaultModule(): Promise<WebAssembly.Module> {
  return WebAssembly.compile(unpack(packed));
}
