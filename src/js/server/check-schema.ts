import type { JsonSchema } from "../schema.js";

/** The deepest that schemas and values are followed into each other; beyond it everything is taken. */
const MAX_DEPTH = 64;

/** The most faults told of one value. */
const MAX_FAULTS = 5;

/**
 * What is wrong with a value, in sentences for a model; nothing when it fits. Checked are the keywords that tools use: types,
 * `enum`, `const`, `properties`, `required`, `additionalProperties`, `items`, bounds, `anyOf`, `oneOf`, `allOf`, local `$ref`.
 * The others are not.
 */
export function schemaFaults(schema: unknown, value: unknown): string[] {
  return faults(schema, value, "", schema, 0).slice(0, MAX_FAULTS);
}

function faults(schema: unknown, value: unknown, place: string, root: unknown, depth: number): string[] {
  if (schema === false) return [`${name(place)} is not taken`];
  if (typeof schema !== "object" || schema === null || depth > MAX_DEPTH) return [];
  const given = schema as JsonSchema;
  const inner = (other: unknown, at: unknown = value, where = place) => faults(other, at, where, root, depth + 1);
  const found: string[] = [];
  if (typeof given.$ref === "string") found.push(...inner(target(root, given.$ref)));
  const types = typeof given.type === "string" ? [given.type] : Array.isArray(given.type) ? given.type : [];
  if (types.length > 0 && !types.some((type) => isOfType(type, value)))
    return [`${name(place)} has to be ${types.join(" or ")}, and is ${typeOf(value)}`];
  if (Array.isArray(given.enum) && !given.enum.some((choice) => isSame(choice, value)))
    found.push(`${name(place)} has to be one of ${given.enum.map((choice) => JSON.stringify(choice)).join(", ")}`);
  if ("const" in given && !isSame(given.const, value))
    found.push(`${name(place)} has to be ${JSON.stringify(given.const)}`);
  found.push(...boundFaults(given, value, place));
  for (const part of listOf(given.allOf)) found.push(...inner(part));
  const anyOf = listOf(given.anyOf);
  if (anyOf.length > 0 && anyOf.every((part) => inner(part).length > 0))
    found.push(`${name(place)} fits none of the choices: ${inner(anyOf[0])[0]}`);
  const oneOf = listOf(given.oneOf);
  if (oneOf.length > 0 && oneOf.filter((part) => inner(part).length === 0).length !== 1)
    found.push(`${name(place)} has to fit exactly one of the choices`);
  if (Array.isArray(value)) {
    if (given.items !== undefined)
      for (const [index, item] of value.entries()) found.push(...inner(given.items, item, `${place}[${index}]`));
  } else if (typeof value === "object" && value !== null) {
    found.push(...memberFaults(given, value as Record<string, unknown>, place, inner));
  }
  return found;
}

function memberFaults(
  schema: JsonSchema,
  value: Record<string, unknown>,
  place: string,
  inner: (schema: unknown, at: unknown, where: string) => string[],
): string[] {
  const properties = (schema.properties ?? {}) as Record<string, unknown>;
  const found: string[] = [];
  for (const required of listOf(schema.required))
    if (typeof required === "string" && !Object.hasOwn(value, required))
      found.push(`${join(place, required)} is missing`);
  for (const [key, member] of Object.entries(value)) {
    if (Object.hasOwn(properties, key)) found.push(...inner(properties[key], member, join(place, key)));
    else if (schema.additionalProperties !== undefined && schema.patternProperties === undefined)
      found.push(...inner(schema.additionalProperties, member, join(place, key)));
  }
  return found;
}

function boundFaults(schema: JsonSchema, value: unknown, place: string): string[] {
  const size =
    typeof value === "number"
      ? value
      : typeof value === "string"
        ? [...value].length
        : Array.isArray(value)
          ? value.length
          : undefined;
  if (size === undefined) return [];
  const [least, most] =
    typeof value === "number"
      ? [schema.minimum, schema.maximum]
      : typeof value === "string"
        ? [schema.minLength, schema.maxLength]
        : [schema.minItems, schema.maxItems];
  const what = typeof value === "number" ? name(place) : `the length of ${name(place)}`;
  const found: string[] = [];
  if (typeof least === "number" && size < least) found.push(`${what} has to be at least ${least}`);
  if (typeof most === "number" && size > most) found.push(`${what} has to be at most ${most}`);
  if (typeof value !== "number") return found;
  const { exclusiveMinimum: above, exclusiveMaximum: below } = schema;
  if (typeof above === "number" && size <= above) found.push(`${what} has to be more than ${above}`);
  if (typeof below === "number" && size >= below) found.push(`${what} has to be less than ${below}`);
  return found;
}

function target(root: unknown, reference: string): unknown {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  let found = root;
  for (const part of reference.slice(2).split("/")) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    found =
      typeof found === "object" && found !== null && Object.hasOwn(found, key) ? (found as JsonSchema)[key] : undefined;
  }
  return found;
}

function isOfType(type: unknown, value: unknown): boolean {
  if (type === "integer") return Number.isInteger(value);
  return type === typeOf(value);
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function isSame(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return one === other;
  const keys = Object.keys(one);
  if (Array.isArray(one) !== Array.isArray(other) || keys.length !== Object.keys(other).length) return false;
  return keys.every((key) => Object.hasOwn(other, key) && isSame((one as JsonSchema)[key], (other as JsonSchema)[key]));
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function name(place: string): string {
  return place === "" ? "the value" : place;
}

function join(place: string, key: string): string {
  return place === "" ? key : `${place}.${key}`;
}
