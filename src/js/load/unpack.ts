import { fromBase64 } from "../base64.js";

/**
 * A module as text. Servers compress it like any script, and as a byte is always written the same way, that comes within 1 % of
 * the compressed module itself; deflate in base64 is 27 % above it.
 */
export interface Packed {
  /** The module of unpack.wat, in base64. */
  readonly unpacker: string;
  /** One character for a byte, or two. */
  readonly text: string;
}

/** The bytes of the module. */
export function unpack({ unpacker, text }: Packed): Uint8Array<ArrayBuffer> {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(fromBase64(unpacker)));
  const { memory, unpack } = exports as unknown as Unpacker;
  new TextEncoder().encodeInto(text, new Uint8Array(memory.buffer, START));
  const end = unpack(START + text.length);
  return new Uint8Array(memory.buffer, START, end - START);
}

/** Where the text begins, and what it is unpacked to. */
const START = 65_536;

interface Unpacker {
  readonly memory: { readonly buffer: ArrayBuffer };
  unpack(end: number): number;
}
