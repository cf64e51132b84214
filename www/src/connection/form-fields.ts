// The fields of a form that a server asks for, and the values that a person gave them.
import type { JsonSchema } from "crablet";

export interface FormField {
  readonly name: string;
  readonly label: string;
  readonly description?: string;
  readonly kind: "text" | "email" | "url" | "date" | "datetime-local" | "number" | "checkbox" | "select" | "multiple";
  readonly isRequired: boolean;
  /** What may be chosen. */
  readonly options: readonly { readonly value: string; readonly label: string }[];
  /** What stands there at first. */
  readonly initial: readonly string[];
  /** Limits, as the field of a page has them. */
  readonly limits: Readonly<Record<string, number | string>>;
}

export type FormValues = Record<string, string | number | boolean | string[]>;

const FORMATS = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" } as const;

/** The fields of a flat schema, in its order. */
export function fieldsOf(schema: JsonSchema): FormField[] {
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(asObject(schema.properties)).map(([name, property]) =>
    fieldOf(name, asObject(property), required.includes(name)),
  );
}

/** The values of a form; fields that were left empty are left out. */
export function valuesOf(fields: readonly FormField[], data: FormData): FormValues {
  const values: FormValues = {};
  for (const { name, kind } of fields) {
    const given = data.getAll(name).map(String);
    if (kind === "checkbox") values[name] = given.length > 0;
    else if (kind === "multiple") values[name] = given;
    else if (given[0] !== undefined && given[0] !== "") values[name] = kind === "number" ? Number(given[0]) : given[0];
  }
  return values;
}

function fieldOf(name: string, property: JsonSchema, isRequired: boolean): FormField {
  const isMultiple = property.type === "array";
  const options = optionsOf(isMultiple ? asObject(property.items) : property);
  const initial = [property.default ?? []].flat().map(String);
  return {
    name,
    label: typeof property.title === "string" ? property.title : name,
    ...(typeof property.description === "string" && { description: property.description }),
    kind: isMultiple ? "multiple" : options.length > 0 ? "select" : kindOf(property),
    isRequired,
    options,
    initial,
    limits: limitsOf(property),
  };
}

function kindOf({ type, format }: JsonSchema): FormField["kind"] {
  if (type === "boolean") return "checkbox";
  if (type === "number" || type === "integer") return "number";
  return FORMATS[format as keyof typeof FORMATS] ?? "text";
}

function optionsOf({ enum: values, enumNames, oneOf, anyOf }: JsonSchema): FormField["options"] {
  if (Array.isArray(values)) {
    const names = Array.isArray(enumNames) ? enumNames : values;
    return values.map((value, index) => ({ value: String(value), label: String(names[index] ?? value) }));
  }
  const choices = Array.isArray(oneOf) ? oneOf : Array.isArray(anyOf) ? anyOf : [];
  return choices.map(asObject).map((choice) => ({
    value: String(choice.const),
    label: String(choice.title ?? choice.const),
  }));
}

function limitsOf({ type, minLength, maxLength, minimum, maximum }: JsonSchema): FormField["limits"] {
  const limits = { minLength, maxLength, min: minimum, max: maximum };
  const given = Object.entries(limits).filter((limit): limit is [string, number] => typeof limit[1] === "number");
  return { ...Object.fromEntries(given), ...(type === "number" && { step: "any" }) };
}

function asObject(value: unknown): JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonSchema) : {};
}
