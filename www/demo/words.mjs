// How the demo model reads a prompt: words, quoted strings, paths and numbers, and which words mean the same.

/** Words that say nothing about which tool is meant. */
const STOP_WORDS = new Set(
  "a an and any are as at be by can could do does for from give has have how i in into is it its me my of on or our please that the their then there these this to us use using was what which with would you your".split(
    " ",
  ),
);

/** Words that people write for the words that tools are named with. */
const SYNONYMS = new Map(
  Object.entries({
    read: "read open show print cat say says contain contains content contents text quote",
    write: "write save put store",
    create: "create make mkdir",
    list: "list ls entries",
    directory: "directory folder dir folders directories",
    search: "search find look locate grep",
    move: "move rename mv",
    info: "info information metadata details stat size modified",
    tree: "tree recursive recursively hierarchy",
    edit: "edit replace change",
    sum: "sum add plus total",
    weather: "weather forecast temperature umbrella",
    time: "time clock now date",
  }).flatMap(([meaning, words]) => words.split(" ").map((word) => [word, meaning])),
);

/** The meanings in a text, in order: lower-case words without stop words, synonyms and plurals brought together. */
export function meanings(text) {
  return words(text).map(meaningOf);
}

/** The meanings in an identifier such as `read_text_file`, `getSum` or `list-directory`. */
export function nameMeanings(name) {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean)
    .map(meaningOf);
}

/**
 * The values a prompt mentions, in order: `{ kind: "quoted" | "path" | "pattern" | "number", value }`.
 * A quoted string that looks like a path is a path; one with a star in it is a pattern.
 */
export function values(text) {
  const found = [];
  const pattern =
    /"([^"]*)"|“([^”]*)”|'([^'\n]{2,})'(?![a-z])|`([^`]*)`|([\w./~*-]*(?:\/[\w./~*-]*\w\/?|\/|\.\w{1,8}\b))|(-?\d+)/g;
  for (const match of text.matchAll(pattern)) {
    const quoted = match[1] ?? match[2] ?? match[3] ?? match[4];
    if (quoted !== undefined) {
      found.push({ kind: looksLikePath(quoted) ? pathKind(quoted) : "quoted", value: quoted });
    } else if (match[5] !== undefined) {
      found.push(
        isNumber(match[5])
          ? { kind: "number", value: Number(match[5]) }
          : { kind: pathKind(match[5]), value: match[5] },
      );
    } else {
      found.push({ kind: "number", value: Number(match[6]) });
    }
  }
  return found;
}

/** What is left of a text when its first word (the verb) and its quotes and paths are taken away. */
export function freeText(text) {
  return text
    .trim()
    .replace(/^(?:please\s+|then\s+)*\S+\s*/i, "")
    .replace(/[.?!]+$/, "")
    .trim();
}

function words(text) {
  return text
    .toLowerCase()
    .replace(/["“”`]/g, " ")
    .split(/[^a-z0-9_'-]+/)
    .filter((word) => word && !STOP_WORDS.has(word));
}

function meaningOf(word) {
  const known = SYNONYMS.get(word);
  if (known) return known;
  const singular = word.replace(/ies$/, "y").replace(/(?<=[^s])s$/, "");
  return SYNONYMS.get(singular) ?? singular;
}

function looksLikePath(text) {
  return /^[^\s]*[\w~-]\.\w{1,8}$|^[^\s]*\/[^\s]*$|^[^/]+\.\w{1,5}$/.test(text) && !/[.!?]\s/.test(text);
}

function pathKind(text) {
  return text.includes("*") ? "pattern" : "path";
}

function isNumber(text) {
  return /^-?\d+(?:\.\d+)?$/.test(text);
}
