import { base64 } from "#inlined";
import { fromBase64 } from "../base64.js";

/** Unpacks the module that is part of this file: works in every bundler, service worker and extension without configuration. */
export async function defaultModule(): Promise<WebAssembly.Module> {
  const unpacked = new Blob([fromBase64(base64)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return WebAssembly.compile(await new Response(unpacked).arrayBuffer());
}
