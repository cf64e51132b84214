import { invalidInput, messageOf } from "./error.js";

/**
 * The JSON text of a value, as the module reads it: a half of a surrogate pair, which is no text in any encoding, becomes
 * U+FFFD.
 *
 * @internal
 */
export function toJson(value: unknown, what: string, replacer?: (name: string, value: unknown) => unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value, replacer);
  } catch (thrown) {
    throw invalidInput(`${what} cannot be written as JSON: ${messageOf(thrown)}`);
  }
  if (text === undefined) throw invalidInput(`${what} cannot be written as JSON: it is ${typeof value}`);
  if (!text.includes("\\ud")) return text;
  // JSON.stringify escapes lone surrogates only; an escaped backslash before "ud…" is text and stays.
  return text.replace(/(\\\\)|\\ud[89a-f][0-9a-f]{2}/g, (_, backslash?: string) => backslash ?? "\ufffd");
}
