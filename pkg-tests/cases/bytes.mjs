// The bytes of an answer, and ways to cut them.

/** Below this many bytes an answer is cut in two at every byte, above it at random places. */
const SMALL = 600;
const RANDOM_CUTTINGS = 200;

/** A chunk of a case: a string, or `{"b64": …}` for exact bytes. */
export function bytesOf(chunk) {
  if (typeof chunk === "string") return Buffer.from(chunk);
  if (typeof chunk?.b64 === "string") return Buffer.from(chunk.b64, "base64");
  throw new Error("a chunk is neither a string nor base64");
}

/**
 * The chunks of an input: `chunks`, or `chunks_gen`, a recipe for many or large ones. A recipe is a list of chunks, of
 * `{"repeat": chunk, "times": n}` and of `{"line_bytes": n}`, a line of that many bytes.
 */
export function chunksOf({ chunks, chunks_gen: recipe }) {
  if (Array.isArray(chunks)) return chunks.map(bytesOf);
  if (!Array.isArray(recipe)) throw new Error("it has no list of chunks");
  return recipe.flatMap((step) => {
    if (typeof step === "string") return [bytesOf(step)];
    if (step?.repeat !== undefined) return Array.from({ length: step.times }, () => bytesOf(step.repeat));
    if (step?.line_bytes !== undefined) return [Buffer.from(`${"x".repeat(step.line_bytes - 1)}\n`)];
    return [bytesOf(step)];
  });
}

/** Other cuttings of the same bytes: whole, single bytes, and in two at every byte or at random places. */
export function cuttings(bytes) {
  const pieces = [[bytes], Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))];
  if (bytes.length <= SMALL) {
    for (let at = 1; at < bytes.length; at += 1) pieces.push([bytes.subarray(0, at), bytes.subarray(at)]);
  } else {
    for (let seed = 1; seed <= RANDOM_CUTTINGS; seed += 1) pieces.push(random(bytes, seed));
  }
  return pieces;
}

/** Cut at random places, the same ones for the same seed. */
export function random(bytes, seed) {
  let state = seed;
  const longest = 1 + Math.floor(bytes.length / (1 + (seed % 40)));
  const pieces = [];
  for (let at = 0; at < bytes.length; ) {
    state = (state * 48_271) % 2_147_483_647;
    const length = 1 + (state % longest);
    pieces.push(bytes.subarray(at, at + length));
    at += length;
  }
  return pieces;
}
