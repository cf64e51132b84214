// What a tool gave, made ready to be shown.
import type { FilePart, TextPart } from "crablet";

/** The longest text shown, in UTF-16 units: more than anybody reads in a card, less than what makes a page slow. */
const MAX_TEXT = 20_000;

/** The longest preview on one line: wider than any line of the page. */
const MAX_PREVIEW = 200;

/** The most rows of a table: what is more is in the text beside it. */
const MAX_ROWS = 100;

/** A table of a value: columns, and rows of texts. */
export interface TableData {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** The text of a result. */
export function textOf(content: readonly (TextPart | FilePart)[]): string {
  return bounded(content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n"));
}

/** Any value as text: a text as it is, everything else as JSON. */
export function printed(value: unknown): string {
  return bounded(typeof value === "string" ? value : (JSON.stringify(value, undefined, 2) ?? ""));
}

/** A text brought to one line, for a preview. */
export function oneLine(text: string): string {
  return text
    .slice(0, MAX_PREVIEW * 2)
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, MAX_PREVIEW);
}

/** The table in a value: a list of flat objects, or the only such list of an object. `undefined` when there is none. */
export function tableOf(value: unknown): TableData | undefined {
  const list = Array.isArray(value) ? value : isObject(value) ? onlyList(Object.values(value)) : undefined;
  if (!list || list.length === 0 || !list.every(isFlat)) return undefined;
  const columns = [...new Set(list.flatMap((row) => Object.keys(row)))];
  const rows = list.slice(0, MAX_ROWS).map((row) => columns.map((column) => cellOf(row[column])));
  return { columns, rows };
}

function cellOf(value: unknown): string {
  return value === null || value === undefined ? "" : String(value);
}

function onlyList(values: readonly unknown[]): readonly unknown[] | undefined {
  const lists = values.filter((value): value is readonly unknown[] => Array.isArray(value));
  return lists.length === 1 ? lists[0] : undefined;
}

function isFlat(value: unknown): value is Readonly<Record<string, unknown>> {
  return isObject(value) && Object.values(value).every((member) => typeof member !== "object" || member === null);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function bounded(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}\n… (${text.length - MAX_TEXT} more)` : text;
}
