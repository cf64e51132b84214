// Secrets to plant, in the forms in which a careless server repeats them, and a search for what is left of them.
import assert from "node:assert/strict";
import { inspect } from "node:util";

/** Characters that addresses, JSON and Base64 write in other ways. */
const AWKWARD = '+%="';

/** A secret of that name. Long enough to be a key, and with nothing of the shapes that are known for keys. */
export const planted = (name) => `planted-${name}-${AWKWARD}-value`;

/** One that may stand in a user name, and in what is signed. */
export const plainPlanted = (name) => `planted-${name}-value`;

const WHOLE = /planted-[a-z-]+-(?:\+%="-)?value/g;

/** The planted secrets in a text. */
export const plantedIn = (text) => [...new Set(String(text).match(WHOLE) ?? [])];

/** A secret as it is, in JSON, in an address, and in Base64. */
export const formsOf = (secret) => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  encodeURIComponent(secret),
  Buffer.from(secret).toString("base64"),
  Buffer.from(secret).toString("base64url"),
];

const PREFIX = "planted-";

/** The beginning of any of them: in plain letters, in Base64 at each place in a group of three bytes, and in hexadecimal digits. */
const MARKS = [
  /planted-[a-z]/,
  ...[0, 1, 2].map((before) => {
    const encoded = Buffer.from("x".repeat(before) + PREFIX)
      .toString("base64")
      .replace(/=+$/, "");
    // Without the characters that what stands before and behind has a part in.
    const start = Math.ceil((before * 8) / 6);
    return new RegExp(encoded.slice(start, Math.floor(((before + PREFIX.length) * 8) / 6)));
  }),
  new RegExp(Buffer.from(PREFIX).toString("hex"), "i"),
];

/** Where something planted shows in a text, with what stands around it; `undefined` when nothing does. */
export function leakIn(text) {
  for (const mark of MARKS) {
    const at = text.search(mark);
    if (at >= 0) return text.slice(Math.max(0, at - 120), at + 80);
  }
  return undefined;
}

/** What a person can come to see of something, members that are not shown included. */
export function shown(value) {
  const text = inspect(value, { depth: Number.POSITIVE_INFINITY, showHidden: true, maxStringLength: null });
  return `${text}\n${value?.stack}\n${value?.message}\n${String(value)}\n${json(value)}`;
}

function json(value) {
  try {
    return JSON.stringify(value);
  } catch {
    return "";
  }
}

/** Runs something with the console and the process's own streams watched, and fails when anything of what is planted shows. */
export async function findsNothing(what, run) {
  const seen = [];
  const methods = ["debug", "dir", "error", "info", "log", "table", "trace", "warn"];
  const own = Object.fromEntries(methods.map((method) => [method, console[method]]));
  for (const method of methods) console[method] = (...values) => seen.push(["console", ...values]);
  const warned = (warning) => seen.push(["warning", warning]);
  process.on("warning", warned);
  try {
    await run((name, value) => seen.push([name, value]));
  } finally {
    Object.assign(console, own);
    process.off("warning", warned);
  }
  for (const [name, ...values] of seen) {
    for (const value of values) {
      const leak = leakIn(shown(value));
      assert.ok(leak === undefined, `${what}: in the ${name}: ${leak}`);
    }
  }
}
