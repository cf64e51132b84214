import { invalidInput } from "./error.js";

/** A JSON Schema, 2020-12 or what providers take of it. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** A Standard Schema: what zod, valibot, arktype and others make. See https://standardschema.dev. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    /** Checks a value, and may change it. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** What a Standard Schema says of a value. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** One thing that is wrong with a value. */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A Standard Schema that cannot print itself, with the JSON Schema written beside it. */
export interface SchemaPair<Input = any, Output = any> {
  readonly schema: StandardSchema<Input, Output>;
  readonly jsonSchema: JsonSchema;
}

/** What a tool's input can be described with. */
export type Schema = StandardSchema<any, any> | SchemaPair | JsonSchema;

/** The type of a validated value. */
export type Infer<S> =
  S extends StandardSchema<any, infer Output>
    ? Output
    : S extends SchemaPair<any, infer Output>
      ? Output
      : FromJsonSchema<S>;

/** The type a JSON Schema describes, where it is written as a constant; `any` where the keywords say too little. */
export type FromJsonSchema<S> = S extends { readonly const: infer Value }
  ? Value
  : S extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : S extends { readonly anyOf: readonly (infer Choice)[] }
      ? Choice extends unknown
        ? FromJsonSchema<Choice>
        : never
      : S extends { readonly type: "string" }
        ? string
        : S extends { readonly type: "number" | "integer" }
          ? number
          : S extends { readonly type: "boolean" }
            ? boolean
            : S extends { readonly type: "null" }
              ? null
              : S extends { readonly type: "array"; readonly items: infer Items }
                ? FromJsonSchema<Items>[]
                : S extends { readonly type: "object"; readonly properties: infer Properties }
                  ? Simplify<
                      ObjectOf<Properties, S extends { readonly required: readonly (infer Name)[] } ? Name : never>
                    >
                  : any;

type ObjectOf<Properties, Required> = {
  -readonly [Name in keyof Properties as Name extends Required ? Name : never]: FromJsonSchema<Properties[Name]>;
} & { -readonly [Name in keyof Properties as Name extends Required ? never : Name]?: FromJsonSchema<Properties[Name]> };
type Simplify<T> = { [Name in keyof T]: T[Name] };

/** @internal A schema as the machine takes it: the JSON Schema, and the validator of a Standard Schema. */
export interface CompiledSchema {
  readonly jsonSchema: JsonSchema;
  readonly standard: StandardSchema | undefined;
}

/** @internal */
export function compileSchema(schema: Schema, of: string): CompiledSchema {
  if (isStandard(schema)) return { jsonSchema: printed(schema, of), standard: schema };
  if (typeof schema === "object" && schema !== null) {
    const pair = schema as SchemaPair;
    return isStandard(pair.schema) && typeof pair.jsonSchema === "object"
      ? { jsonSchema: pair.jsonSchema, standard: pair.schema }
      : { jsonSchema: schema as JsonSchema, standard: undefined };
  }
  throw invalidInput(
    `${of} needs an input schema: a JSON Schema, or a Standard Schema such as zod, valibot or arktype make`,
  );
}

/** @internal Asks a Standard Schema; the answer's message is for the model to read. */
export async function validate(schema: StandardSchema, value: unknown, what = "the input"): Promise<unknown> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return result.value;
  throw new Error(`${what} is not valid: ${result.issues.map(describeIssue).join("; ")}`);
}

function describeIssue({ message, path }: StandardIssue): string {
  const keys = path?.map((segment) => String(typeof segment === "object" ? segment.key : segment)) ?? [];
  return keys.length === 0 ? message : `${keys.join(".")}: ${message}`;
}

function isStandard(schema: unknown): schema is StandardSchema {
  // arktype's schemas are functions.
  return (typeof schema === "object" || typeof schema === "function") && schema !== null && "~standard" in schema;
}

/** The JSON Schema of a Standard Schema, asked for in the three ways there are. */
function printed(schema: StandardSchema, of: string): JsonSchema {
  const standard = schema["~standard"] as { jsonSchema?: { input?: (options: { target: string }) => JsonSchema } };
  const printer = schema as { toJSONSchema?: () => JsonSchema; toJsonSchema?: () => JsonSchema };
  const printed =
    standard.jsonSchema?.input?.({ target: "draft-2020-12" }) ?? printer.toJSONSchema?.() ?? printer.toJsonSchema?.();
  if (printed !== undefined) return printed;
  throw invalidInput(
    `${of}: this ${schema["~standard"].vendor} schema cannot print itself as JSON Schema, which is what the model is told. ` +
      "Give both: input: { schema, jsonSchema }",
  );
}
