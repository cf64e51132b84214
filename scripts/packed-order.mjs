// Finds the characters of bytes with which brotli makes the least of the packed module, and prints them for scripts/packed.mjs:
//
//   node scripts/packed-order.mjs     after a build; half a minute
//
// Brotli (RFC 7932, section 7.1) keeps statistics of what follows for each kind of the last two characters. This exchanges
// characters of different kinds as long as what follows becomes more certain. It pays again when the module is made in another way.
import { readFileSync } from "node:fs";
import { CHARACTERS, PAIR_STARTS } from "./packed.mjs";

const module = readFileSync(new URL("../dist/package/crablet.wasm", import.meta.url));
const singles = CHARACTERS.length - PAIR_STARTS.length;

/** The kinds of the character before, and of the one before that. */
const KINDS = [/ /, /%/, /[,:;]/, /\./, /=/, /[([{]/, /[)\]}>]/, /[0-9]/, /[AEIOU]/, /[A-Z]/, /[aeiou]/, /[a-z]/, /./];
const EARLIER_KINDS = [/ /, /[a-z]/, /[A-Z0-9]/, /./];
const kinds = CHARACTERS.map((character) => KINDS.findIndex((kind) => kind.test(character)));
const earlierKinds = CHARACTERS.map((character) => EARLIER_KINDS.findIndex((kind) => kind.test(character)));

/** What often comes is a copy of what was there before, of which brotli writes no characters. */
const WEIGHT = 0.6;

const counts = new Array(256).fill(0);
for (const byte of module) counts[byte] += 1;
const order = [...counts.keys()].sort((one, other) => counts[other] - counts[one]);
const triples = triplesOf(module);
const statistics = new Float64Array(KINDS.length * EARLIER_KINDS.length * CHARACTERS.length);

/** The character of each symbol, by its place in CHARACTERS; symbols are numbered as the bytes they are of are frequent. */
const places = Array.from(CHARACTERS, (_, place) => place);
let least = cost();
for (let isBetter = true; isBetter; ) {
  isBetter = false;
  for (let one = 0; one < singles; one++) {
    let best = one;
    for (let other = 0; other < singles; other++) {
      if (kinds[places[one]] === kinds[places[other]]) continue;
      exchange(one, other);
      const now = cost();
      if (now < least) [least, best] = [now, other];
      exchange(one, other);
    }
    if (best === one) continue;
    exchange(one, best);
    isBetter = true;
  }
}
const written = new Array(256).fill('"');
for (const [symbol, byte] of order.slice(0, singles).entries()) written[byte] = CHARACTERS[places[symbol]];
for (let from = 0; from < 256; from += 64) console.log(written.slice(from, from + 64).join(""));

/** Three symbols that follow each other, and how much they count. A rare byte is two symbols. */
function triplesOf(module) {
  const symbols = order.map((_, place) => {
    const above = place - singles;
    return above < 0 ? [place] : [singles + Math.floor(above / CHARACTERS.length), above % CHARACTERS.length];
  });
  const ofByte = new Array(256);
  for (const [place, byte] of order.entries()) ofByte[byte] = symbols[place];
  const stream = Array.from(module, (byte) => ofByte[byte]).flat();
  const found = new Map();
  for (let at = 2; at < stream.length; at++) {
    const key = (stream[at - 2] * 128 + stream[at - 1]) * 128 + stream[at];
    found.set(key, (found.get(key) ?? 0) + 1);
  }
  return Array.from(found, ([key, count]) => [key >> 14, (key >> 7) & 127, key & 127, count ** WEIGHT]);
}

/** The bits that the symbols take when each is guessed from the kinds of the two before it. */
function cost() {
  statistics.fill(0);
  for (const [earlier, before, symbol, weight] of triples) {
    const kind = kinds[places[before]] * EARLIER_KINDS.length + earlierKinds[places[earlier]];
    statistics[kind * CHARACTERS.length + symbol] += weight;
  }
  let bits = 0;
  for (let from = 0; from < statistics.length; from += CHARACTERS.length) {
    let sum = 0;
    for (let at = from; at < from + CHARACTERS.length; at++) {
      const count = statistics[at];
      if (count === 0) continue;
      bits -= count * Math.log2(count);
      sum += count;
    }
    if (sum > 0) bits += sum * Math.log2(sum);
  }
  return bits;
}

function exchange(one, other) {
  [places[one], places[other]] = [places[other], places[one]];
}
