import { type Fields, fields, RpcFault } from "../protocol.js";
import { HEADER_MISMATCH } from "./head.js";

/** How deep a schema is searched for annotations. */
const DEPTH_LIMIT = 64;
const ANNOTATION = "x-mcp-header";
/** Members of a schema that hold data and no schemas. */
const DATA: ReadonlySet<string> = new Set(["const", "default", "enum", "example", "examples"]);

/** A property of a tool's arguments that a header repeats (2026-07-28, "Custom Headers from Tool Parameters"). */
interface Mirrored {
  readonly header: string;
  readonly path: readonly string[];
}

/**
 * Checks that the `mcp-param-*` headers of a call say what its arguments say.
 *
 * @throws RpcFault
 */
export function checkArguments(schema: unknown, given: unknown, headers: Headers): void {
  for (const { header, path } of mirroredParams(schema)) {
    const name = `mcp-param-${header.toLowerCase()}`;
    const value = path.reduce<unknown>((value, key) => fields(value)?.[key], given);
    const meant = ["string", "number", "boolean"].includes(typeof value) ? String(value) : undefined;
    const sent = headers.get(name);
    const said = sent === null ? undefined : decode(sent);
    const isRight = meant === undefined ? sent === null : said !== undefined && isSame(said, meant);
    if (!isRight)
      throw new RpcFault(HEADER_MISMATCH, `the header ${name} does not say what the argument of the tool says`);
  }
}

/**
 * The value that a header carries: itself, or what stands encoded in `=?base64?…?=`. `undefined` when that is no base64 with its
 * padding, or no UTF-8.
 */
export function decode(header: string): string | undefined {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(header)?.[1];
  if (encoded === undefined) return header;
  try {
    const bytes = atob(encoded);
    if (btoa(bytes) !== encoded) return undefined;
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return decoder.decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

/** Whether two texts are the same, or the same number: 42 and 42.0 are. */
function isSame(said: string, meant: string): boolean {
  return said === meant || (said.trim() !== "" && Number.isFinite(Number(said)) && Number(said) === Number(meant));
}

/** The annotated properties; none of a tool whose annotations cannot be obeyed, since clients must not offer it. */
function mirroredParams(schema: unknown): readonly Mirrored[] {
  const found: Mirrored[] = [];
  try {
    search(schema, [], found, DEPTH_LIMIT);
  } catch {
    return [];
  }
  return found;
}

/** Searches a schema that is reached through properties only, where annotations of its properties count. */
function search(schema: unknown, path: readonly string[], found: Mirrored[], depth: number): void {
  if (depth === 0) throw new RangeError("the schema is nested too deeply");
  for (const [name, member] of Object.entries(fields(schema) ?? {})) {
    const properties = name === "properties" ? fields(member) : undefined;
    if (properties !== undefined) {
      for (const [property, inner] of Object.entries(properties)) {
        const annotated = fields(inner);
        if (annotated !== undefined && ANNOTATION in annotated)
          found.push({ header: headerOf(annotated, found), path: [...path, property] });
        search(inner, [...path, property], found, depth - 1);
      }
    } else if (name !== ANNOTATION && !DATA.has(name)) forbid(member, depth - 1);
  }
}

function headerOf(schema: Fields, found: readonly Mirrored[]): string {
  const header = schema[ANNOTATION];
  const isFine =
    typeof header === "string" &&
    /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(header) &&
    ["string", "integer", "boolean"].includes(schema.type as string) &&
    !found.some((other) => other.header.toLowerCase() === header.toLowerCase());
  if (!isFine) throw new TypeError("the annotation cannot be obeyed");
  return header;
}

/** Below anything but properties no annotation may stand: the value it means would not be definite. */
function forbid(schema: unknown, depth: number): void {
  if (depth === 0) throw new RangeError("the schema is nested too deeply");
  if (Array.isArray(schema)) for (const element of schema) forbid(element, depth - 1);
  const members = fields(schema);
  if (members === undefined) return;
  if (typeof members[ANNOTATION] === "string") throw new TypeError("the annotation means no single property");
  for (const [name, member] of Object.entries(members)) if (!DATA.has(name)) forbid(member, depth - 1);
}
