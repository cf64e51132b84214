// A first input for a tool that is tried by hand.
import type { JsonSchema } from "crablet";

/** Where to begin with a tool's input: its required members, with the defaults or something of the right type. */
export function sampleInput(schema: JsonSchema): Record<string, unknown> {
  const properties = asObject(schema.properties);
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.fromEntries(required.map((name) => [String(name), sampleOf(asObject(properties[String(name)]))]));
}

function sampleOf(schema: Readonly<Record<string, unknown>>): unknown {
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  switch (schema.type) {
    case "number":
    case "integer":
      return 0;
    case "boolean":
      return false;
    case "array":
      return [];
    case "object":
      return sampleInput(schema);
    default:
      return "";
  }
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
