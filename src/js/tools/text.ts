/** How much of a file is looked at to tell text from other data. */
const LOOKED_AT = 8_192;

/**
 * The text of a file, its byte order mark included, or `undefined` when it is no text: it has a zero byte near its beginning,
 * or is not UTF-8.
 */
export function decodeText(content: Uint8Array): string | undefined {
  if (content.subarray(0, LOOKED_AT).includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    return undefined;
  }
}

/** The lines of a text, without their ends and without a byte order mark. An end of line at the end starts no line. */
export function linesOf(text: string): string[] {
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** The beginning of a text, never cut inside a character. */
export function clipped(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const isInside = /[\ud800-\udbff]/.test(text.charAt(maxLength - 1));
  return text.slice(0, isInside ? maxLength - 1 : maxLength);
}
