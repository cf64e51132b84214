import { fields, type Fields, list, type OpenApiDocument } from "./document.js";

/** The most schema objects of one operation once its references are written out: beyond it no model reads them. */
const MAX_SCHEMAS = 2_000;

/** The deepest that schemas stand in each other. */
const MAX_DEPTH = 24;

/** Keywords that hold a schema. */
const SCHEMA: ReadonlySet<string> = new Set(["items", "additionalProperties", "not", "contains", "propertyNames"]);
/** Keywords that hold a list of schemas. */
const SCHEMAS: ReadonlySet<string> = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
/** Keywords that hold an object of schemas. */
const NAMED_SCHEMAS: ReadonlySet<string> = new Set(["properties", "patternProperties", "dependentSchemas"]);
/** Keywords that are not for a model. */
const DROPPED: ReadonlySet<string> = new Set([
  "$id",
  "$schema",
  "$anchor",
  "$comment",
  "deprecated",
  "discriminator",
  "example",
  "externalDocs",
  "nullable",
  "readOnly",
  "writeOnly",
  "xml",
]);

/** Writes the schemas of one operation as JSON Schema without references. */
export class SchemaPrinter {
  readonly #document: OpenApiDocument;
  #left = MAX_SCHEMAS;

  constructor(document: OpenApiDocument) {
    this.#document = document;
  }

  /**
   * A schema without references. What refers to itself becomes a schema that takes anything from there on.
   *
   * @throws Error when the schema is too large, or a reference leads nowhere.
   */
  print(schema: unknown): Fields {
    const printed = this.#print(schema, [], 0);
    return typeof printed === "boolean" ? (printed ? {} : { not: {} }) : printed;
  }

  #print(schema: unknown, path: readonly string[], depth: number): Fields | boolean {
    if (typeof schema === "boolean") return schema;
    const given = fields(schema) ?? {};
    this.#left -= 1;
    if (this.#left < 0) throw new Error(`its schemas are too large: more than ${MAX_SCHEMAS} with their references`);
    if (depth > MAX_DEPTH) return {};
    const reference = given.$ref;
    if (typeof reference !== "string") return this.#keywords(given, path, depth);
    if (path.includes(reference)) return { description: `another ${reference.split("/").at(-1)}` };
    const target = this.#print(this.#document.target(reference), [...path, reference], depth + 1);
    // In 3.1 other keywords may stand beside a reference; of those a description is the one that is used.
    const { description } = given;
    return typeof target === "object" && typeof description === "string" ? { ...target, description } : target;
  }

  #keywords(schema: Fields, path: readonly string[], depth: number): Fields {
    const inner = (value: unknown): Fields | boolean => this.#print(value, path, depth + 1);
    const printed: [string, unknown][] = [];
    for (const [keyword, value] of Object.entries(schema)) {
      if (DROPPED.has(keyword) || keyword.startsWith("x-")) continue;
      if (SCHEMA.has(keyword)) printed.push([keyword, inner(value)]);
      else if (SCHEMAS.has(keyword)) printed.push([keyword, list(value).map(inner)]);
      else if (NAMED_SCHEMAS.has(keyword)) printed.push([keyword, this.#named(fields(value) ?? {}, inner)]);
      else if (keyword !== "$defs" && keyword !== "definitions") printed.push([keyword, value]);
    }
    const result = Object.fromEntries(printed);
    this.#dropReadOnly(schema, result);
    return this.#document.is30 ? modernised(schema, result) : result;
  }

  #named(schemas: Fields, inner: (schema: unknown) => Fields | boolean): Fields {
    return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, inner(schema)]));
  }

  /** What only the server sets is not asked of the model. */
  #dropReadOnly(schema: Fields, printed: Record<string, unknown>): void {
    const properties = fields(schema.properties) ?? {};
    const readOnly = new Set(Object.keys(properties).filter((name) => this.#isReadOnly(properties[name])));
    if (readOnly.size === 0) return;
    const kept = Object.entries(fields(printed.properties) ?? {}).filter(([name]) => !readOnly.has(name));
    printed.properties = Object.fromEntries(kept);
    if ("required" in printed) printed.required = list(printed.required).filter((name) => !readOnly.has(String(name)));
  }

  #isReadOnly(property: unknown): boolean {
    const given = fields(property);
    return given?.readOnly === true || this.#document.resolve(property)?.readOnly === true;
  }
}

/** The words of OpenAPI 3.0 that JSON Schema has others for. */
function modernised(schema: Fields, printed: Record<string, unknown>): Fields {
  if (schema.nullable === true && typeof printed.type === "string") {
    printed.type = [printed.type, "null"];
    if (Array.isArray(printed.enum) && !printed.enum.includes(null)) printed.enum = [...printed.enum, null];
  }
  for (const [exclusive, inclusive] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"],
  ] as const) {
    if (typeof printed[exclusive] !== "boolean") continue;
    const isExclusive = printed[exclusive];
    delete printed[exclusive];
    if (isExclusive && inclusive in printed) {
      printed[exclusive] = printed[inclusive];
      delete printed[inclusive];
    }
  }
  return printed;
}
