import type { AgentEvent } from "./event.js";
import { PartialJson } from "./partial-json.js";
import { compileSchema, type CompiledSchema, type Infer, type JsonSchema, type Schema, validate } from "./schema.js";

/** The type of a run's output, by the schema that was given for it; `undefined` without one. */
export type OutputOf<S> = [S] extends [Schema] ? Infer<S> : undefined;

/** An output that is still being written: any member may be missing, and texts and lists may grow. */
export type PartialOutput<Value> = Value extends readonly (infer Element)[]
  ? PartialOutput<Element>[]
  : Value extends object
    ? { [Name in keyof Value]?: PartialOutput<Value[Name]> }
    : Value;

/** @internal What a run shall end with. */
export class RunOutput {
  readonly #schema: CompiledSchema;
  /** No provider takes a schema whose root is no object: such a value becomes a member of one. */
  readonly #isWrapped: boolean;

  constructor(schema: Schema) {
    this.#schema = compileSchema(schema, "output");
    const { type, properties } = this.#schema.jsonSchema;
    this.#isWrapped = type !== "object" && properties === undefined;
  }

  /** What the module is told. */
  get config(): Record<string, unknown> {
    const { jsonSchema, standard } = this.#schema;
    const { title, description } = jsonSchema;
    return {
      name: typeof title === "string" && title !== "" ? title : "output",
      description: typeof description === "string" ? description : undefined,
      schema: this.#isWrapped ? wrapped(jsonSchema) : jsonSchema,
      hasValidator: standard !== undefined,
    };
  }

  /** The value within what the module gives. */
  unwrap(output: unknown): unknown {
    return this.#isWrapped ? (output as { value?: unknown } | undefined)?.value : output;
  }

  /** What the caller gets of a value: the validator's own form of it. */
  async validate(value: unknown): Promise<unknown> {
    const { standard } = this.#schema;
    return standard === undefined ? value : validate(standard, value, "the object");
  }
}

/** @internal Reads the output of a run from its events, while it is written. */
export class PartialOutputReader {
  readonly #output: RunOutput;
  #json = new PartialJson();

  constructor(output: RunOutput) {
    this.#output = output;
  }

  /** What there is after these events, as a list of at most one; empty when nothing was added. */
  read(events: readonly AgentEvent[]): unknown[] {
    let hasMore = false;
    for (const event of events) {
      if (event.type === "step-start" || event.type === "step-retry") this.#json = new PartialJson();
      // What was said before is no output when it could not be read.
      else if (event.type === "text-start" && this.#json.value === undefined) this.#json = new PartialJson();
      else if (event.type === "text-delta") {
        this.#json.push(event.delta);
        hasMore = true;
      }
    }
    const value = hasMore ? this.#output.unwrap(this.#json.value) : undefined;
    return value === undefined ? [] : [value];
  }
}

/** An object with the value as its one member. References to the root now lead to that member. */
function wrapped(schema: JsonSchema): JsonSchema {
  const { $defs, definitions, ...value } = schema;
  return {
    type: "object",
    properties: { value: moved(value) },
    required: ["value"],
    additionalProperties: false,
    ...($defs !== undefined && { $defs: moved($defs) }),
    ...(definitions !== undefined && { definitions: moved(definitions) }),
  };
}

function moved(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(moved);
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => {
      const isOfRoot = keyword === "$ref" && typeof value === "string" && /^#(?!\/(\$defs|definitions)\/)/.test(value);
      return [keyword, isOfRoot ? `#/properties/value${value.slice(1)}` : moved(value)];
    }),
  );
}
