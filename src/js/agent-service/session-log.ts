import { NONE_TAKEN, type Taken } from "./inputs.js";

/**
 * What a session's log says: the records of its key folded together.
 *
 * @internal
 */
export interface LogContents {
  /** 0 while there is nothing. */
  readonly version: number;
  /** The sequence of the last record, 0 while there is none. */
  readonly revision: number;
  readonly entries: readonly string[];
  readonly taken: Taken;
  /** How many records there are. */
  readonly records: number;
}

/**
 * The head of a record, its first line; behind it stands a piece of the entries.
 *
 * @internal
 */
export interface RecordHead {
  readonly v: 1;
  /** The write that the record is of: those of one write share it. */
  readonly id: string;
  /** The version that the write makes. */
  readonly version: number;
  /** `append` adds entries, `replace` takes the place of all before, `fence` changes nothing but the revision. */
  readonly kind: "append" | "replace" | "fence";
  /** A write longer than a message goes in so many parts; it counts once all are there, one behind the other. */
  readonly part: number;
  readonly parts: number;
  readonly taken: Taken;
}

/** @internal */
export interface LogRecord {
  readonly seq: number;
  readonly text: string;
}

/** @internal */
export const EMPTY_LOG: LogContents = { version: 0, revision: 0, entries: [], taken: NONE_TAKEN, records: 0 };

/** @internal Reads the records of a session in their order. Those of a write that was not made to its end are void. */
export function foldLog(records: readonly LogRecord[]): LogContents {
  let contents: LogContents = EMPTY_LOG;
  let begun: { head: RecordHead; pieces: string[] } | undefined;
  for (const { seq, text } of records) {
    contents = { ...contents, revision: seq, records: contents.records + 1 };
    const end = text.indexOf("\n");
    const head = headOf(end === -1 ? text : text.slice(0, end));
    if (head === undefined) {
      // A marker of a key that was deleted, or something that nobody can read.
      contents = { ...EMPTY_LOG, revision: seq, records: contents.records };
      begun = undefined;
      continue;
    }
    if (head.kind === "fence") {
      begun = undefined;
      contents = { ...contents, taken: head.taken };
      continue;
    }
    const isNext = begun !== undefined && begun.head.id === head.id && begun.pieces.length === head.part;
    if (head.part === 0) begun = { head, pieces: [] };
    else if (!isNext) begun = undefined;
    if (begun === undefined) continue;
    begun.pieces.push(end === -1 ? "" : text.slice(end + 1));
    if (begun.pieces.length < head.parts) continue;
    const entries = begun.pieces
      .join("")
      .split("\n")
      .filter((line) => line !== "");
    begun = undefined;
    contents = {
      ...contents,
      version: head.version,
      entries: head.kind === "replace" ? entries : [...contents.entries, ...entries],
      taken: head.taken,
    };
  }
  return contents;
}

/** @internal The records of a write, none of them longer than so many bytes. */
export function recordsOf(
  head: Omit<RecordHead, "v" | "part" | "parts">,
  entries: readonly string[],
  maxBytes: number,
): string[] {
  const pieces = cut(entries.join("\n"), maxBytes - HEAD_BYTES);
  return pieces.map((piece, part) => `${JSON.stringify({ v: 1, ...head, part, parts: pieces.length })}\n${piece}`);
}

/** @internal The head of a record; `undefined` when it has none. */
export function headOf(line: string): RecordHead | undefined {
  try {
    const head = JSON.parse(line) as RecordHead | null;
    return typeof head?.version === "number" && typeof head.kind === "string" ? head : undefined;
  } catch {
    return undefined;
  }
}

/** Pieces of a text of at most so many bytes, never cut within a character. */
function cut(text: string, most: number): string[] {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= most) return [text];
  const pieces: string[] = [];
  for (let start = 0; start < bytes.length; ) {
    let end = Math.min(start + most, bytes.length);
    while (end < bytes.length && isWithinCharacter(bytes[end])) end -= 1;
    pieces.push(new TextDecoder().decode(bytes.subarray(start, end)));
    start = end;
  }
  return pieces;
}

const isWithinCharacter = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** What a head may take: the inputs taken out of their order are few, since a session's inputs are bounded. */
const HEAD_BYTES = 8192;
