// The module as text for the default entry: src/js/load/unpack.ts says what the form is for, and turns it back.

/** Printable ASCII without what strings, templates and script elements escape. The last two begin a pair. */
export const CHARACTERS = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)).filter(
  (character) => !"\"'`\\$<".includes(character),
);
export const PAIR_STARTS = CHARACTERS.slice(-2);

/**
 * How each byte is written: by its character here, or where there is `"` by a pair. Brotli guesses a character from the kinds of
 * the two before it, such as digit, capital or vowel; in this order, which scripts/packed-order.mjs found, it guesses best: 4 KB
 * less than when the characters go by how frequent the bytes are.
 */
const WRITTEN =
  '.(;:,|/_+@?-[t&^%!EUK#""Z""]M""" jn16"""42""08"")"""""39>"5"""""' +
  '*ua""AOI"""""""""""""""""""""""""N"BLC""JQ=VSRXFDYTHGP""W""""""{' +
  'i"""o"""h"""""""c"""""""b"""""""p"""""""s"""""""r"""""""y"""z"""' +
  'x7"w""""m"""""""d"""""""v"""""""k"f"""""""""""""l"""""""g"""q""e';

/** The text, and the characters of each byte. */
export function packed(module) {
  const pairs = PAIR_STARTS.flatMap((first) => CHARACTERS.map((second) => first + second));
  const written = Array.from(WRITTEN, (character) => (character === '"' ? pairs.shift() : character));
  return { written, text: Array.from(module, (byte) => written[byte]).join("") };
}
