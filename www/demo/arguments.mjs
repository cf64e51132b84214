// Fills a tool's JSON Schema from the words of a prompt.
import { freeText, nameMeanings, values } from "./words.mjs";

const PATH_NAMES = new Set(["path", "file", "filename", "directory", "source", "destination", "uri", "url", "target"]);

/** How deep nested objects are filled: deeper ones are left empty, since no prompt of a sentence describes them. */
const MAX_DEPTH = 4;

/**
 * Arguments for the required members of `schema`, or `undefined` when the prompt does not say enough.
 *
 * @param {Record<string, any> | undefined} schema the tool's input schema
 * @param {string} prompt the part of the prompt that asks for this call
 */
export function fillArguments(schema, prompt) {
  const source = { prompt, left: values(prompt) };
  return fillObject(schema ?? {}, source, 0);
}

function fillObject(schema, source, depth) {
  const filled = {};
  for (const name of schema.required ?? []) {
    const value = fillMember(name, schema.properties?.[name] ?? {}, source, depth);
    if (value === undefined) return undefined;
    filled[name] = value;
  }
  return filled;
}

function fillMember(name, schema, source, depth) {
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return fillEnum(schema, source);
  switch (typeOf(schema)) {
    case "number":
    case "integer":
      return take(source, "number");
    case "boolean":
      return schema.default ?? false;
    case "array":
      return fillArray(name, schema, source);
    case "object":
      return depth < MAX_DEPTH ? fillObject(schema, source, depth + 1) : {};
    default:
      return fillString(name, schema, source);
  }
}

function fillString(name, schema, source) {
  if (isPathName(name)) {
    const path = take(source, "path") ?? take(source, "quoted");
    if (path !== undefined) return path;
    return mentionsFolder(source.prompt) ? "." : undefined;
  }
  if (nameMeanings(name).includes("pattern")) {
    return take(source, "pattern") ?? take(source, "quoted") ?? take(source, "path") ?? schema.default;
  }
  const given = take(source, "quoted");
  if (given !== undefined) return given;
  if (schema.default !== undefined) return schema.default;
  const rest = freeText(source.prompt);
  return rest === "" ? undefined : rest;
}

function fillEnum(schema, source) {
  const prompt = source.prompt.toLowerCase();
  return (
    schema.enum.find((choice) => prompt.includes(String(choice).toLowerCase())) ?? schema.default ?? schema.enum[0]
  );
}

function fillArray(name, schema, source) {
  const item = schema.items ?? {};
  const kinds =
    typeOf(item) === "number" || typeOf(item) === "integer"
      ? ["number"]
      : isPathName(name)
        ? ["path", "quoted"]
        : ["quoted", "path"];
  const taken = [];
  for (const kind of kinds) {
    for (let value = take(source, kind); value !== undefined; value = take(source, kind)) taken.push(value);
  }
  return taken.length >= (schema.minItems ?? 1) ? taken : undefined;
}

function take(source, kind) {
  const index = source.left.findIndex((value) => value.kind === kind);
  return index < 0 ? undefined : source.left.splice(index, 1)[0].value;
}

function typeOf(schema) {
  return Array.isArray(schema.type) ? schema.type.find((type) => type !== "null") : schema.type;
}

function isPathName(name) {
  return nameMeanings(name).some((word) => PATH_NAMES.has(word));
}

function mentionsFolder(prompt) {
  return /\b(?:folder|directory|dir|here|files)\b/i.test(prompt);
}
