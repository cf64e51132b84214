import { invalidInput } from "../../error.js";

/** A JSON object of a document, read with care: a document may hold anything. */
export type Fields = Readonly<Record<string, unknown>>;

/** How many references may lead to each other before a thing itself is found. */
const MAX_REFERENCES = 16;

/** An OpenAPI document, whose references are followed within it. */
export class OpenApiDocument {
  readonly root: Fields;
  /** Whether schemas are those of OpenAPI 3.0, a dialect of its own. */
  readonly is30: boolean;

  /** @throws CrabletError `invalid-input` when it is no OpenAPI 3 document. */
  constructor(document: unknown) {
    const root = fields(document);
    if (root === undefined) throw invalidInput("an OpenAPI document is an object: parse the JSON or YAML text first");
    const version = String(root.openapi ?? root.swagger ?? "");
    if (!/^3\.[01](\.|$)/.test(version))
      throw invalidInput(
        `the document says OpenAPI version ${JSON.stringify(version)}, and only 3.0 and 3.1 are read: convert it first`,
      );
    this.root = root;
    this.is30 = version.startsWith("3.0");
  }

  /**
   * The object that a value is or refers to; `undefined` when there is none.
   *
   * @throws Error when a reference leads out of the document, to nothing, or in a circle.
   */
  resolve(value: unknown): Fields | undefined {
    let found = fields(value);
    for (let count = 0; found !== undefined && typeof found.$ref === "string"; count += 1) {
      if (count >= MAX_REFERENCES) throw new Error(`the reference ${found.$ref} leads in a circle`);
      found = this.target(found.$ref);
    }
    return found;
  }

  /** @throws Error when the reference leads out of the document or to nothing. */
  target(reference: string): Fields {
    if (!reference.startsWith("#/"))
      throw new Error(`the reference ${reference} leads out of the document: bundle it first`);
    let found: unknown = this.root;
    for (const part of reference.slice(2).split("/")) {
      const name = unescaped(part);
      const holder: unknown = found;
      found =
        typeof holder === "object" && holder !== null && Object.hasOwn(holder, name)
          ? (holder as Fields)[name]
          : undefined;
    }
    const target = fields(found);
    if (target === undefined) throw new Error(`the reference ${reference} leads to nothing`);
    return target;
  }
}

/** The value where it is an object that is no list. */
export function fields(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

/** The value where it is a list, or an empty list. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value where it is a text. */
export function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function unescaped(part: string): string {
  const pointer = part.replaceAll("~1", "/").replaceAll("~0", "~");
  try {
    return decodeURIComponent(pointer);
  } catch {
    return pointer;
  }
}
