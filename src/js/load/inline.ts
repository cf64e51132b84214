import { base64 } from "#inlined";

/** Unpacks the module that is part of this file: works in every bundler, service worker and extension without configuration. */
export async function defaultModule(): Promise<WebAssembly.Module> {
  const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return WebAssembly.compile(await new Response(unpacked).arrayBuffer());
}
