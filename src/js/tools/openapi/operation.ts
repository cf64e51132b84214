import { SchemaPrinter } from "./schema.js";
import { fields, type Fields, list, type OpenApiDocument, text } from "./document.js";
import { type Parameter, parametersOf } from "./parameters.js";

/** An operation of a document, before it becomes a tool. */
export interface ApiOperation {
  /** As in the document; a method and a path where it has none. */
  readonly id: string;
  /** In capitals. */
  readonly method: string;
  /** Such as `/pets/{petId}`. */
  readonly path: string;
  readonly tags: readonly string[];
  readonly summary: string | undefined;
  readonly description: string | undefined;
  readonly deprecated: boolean;
}

/** What an operation needs of a model, and how it is sent. */
export interface OperationPlan {
  readonly parameters: readonly (Parameter & { readonly property: string })[];
  /** The property of the input that is the body, and its media type. */
  readonly body: { readonly property: string; readonly mediaType: string } | undefined;
  readonly inputSchema: Fields;
}

const METHODS: readonly string[] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/** An operation with the objects of the document that it comes from. */
export interface FoundOperation {
  readonly operation: ApiOperation;
  readonly pathItem: Fields;
  readonly given: Fields;
}

/** The operations of a document, in its order. A path that cannot be resolved is told to `skip`. */
export function operationsOf(
  document: OpenApiDocument,
  skip: (operation: string, reason: unknown) => void,
): FoundOperation[] {
  const found: FoundOperation[] = [];
  for (const [path, value] of Object.entries(fields(document.root.paths) ?? {})) {
    if (!path.startsWith("/")) continue;
    let pathItem: Fields | undefined;
    try {
      pathItem = document.resolve(value);
    } catch (reason) {
      skip(path, reason);
    }
    for (const [method, given] of Object.entries(pathItem ?? {})) {
      const operation = fields(given);
      if (!METHODS.includes(method) || operation === undefined || pathItem === undefined) continue;
      found.push({ operation: readOperation(method, path, operation), pathItem, given: operation });
    }
  }
  return found;
}

function readOperation(method: string, path: string, given: Fields): ApiOperation {
  return {
    id: text(given.operationId) ?? `${method}${path}`,
    method: method.toUpperCase(),
    path,
    tags: list(given.tags).filter((tag) => typeof tag === "string"),
    summary: text(given.summary),
    description: text(given.description),
    deprecated: given.deprecated === true,
  };
}

/**
 * How an operation is called.
 *
 * @throws Error with the reason when it cannot be called with JSON, or its schemas cannot be read.
 */
export function planOperation(
  document: OpenApiDocument,
  { pathItem, given, operation }: FoundOperation,
): OperationPlan {
  const printer = new SchemaPrinter(document);
  const properties: [string, Fields][] = [];
  const required: string[] = [];
  const names = new Set<string>();
  const add = (wanted: string, schema: Fields, isRequired: boolean): string => {
    const property = uniqueName(wanted, names);
    properties.push([property, schema]);
    if (isRequired) required.push(property);
    return property;
  };
  const parameters = parametersOf(document, pathItem, given).map((parameter) => {
    const schema = described(printer.print(parameter.schema), parameter.description);
    const wanted = names.has(parameter.name) ? `${parameter.place}_${parameter.name}` : parameter.name;
    return { ...parameter, property: add(wanted, schema, parameter.required) };
  });
  checkPath(operation.path, parameters);
  const body = bodyOf(document, given);
  const property = body && add("body", described(printer.print(body.schema), body.description), body.required);
  return {
    parameters,
    body: body && property !== undefined ? { property, mediaType: body.mediaType } : undefined,
    inputSchema: {
      type: "object",
      properties: Object.fromEntries(properties),
      ...(required.length > 0 && { required }),
      additionalProperties: false,
    },
  };
}

function bodyOf(document: OpenApiDocument, given: Fields) {
  const body = document.resolve(given.requestBody);
  const content = fields(body?.content);
  if (body === undefined || content === undefined) return undefined;
  const required = body.required === true;
  const mediaType = Object.keys(content).find((type) => /^application\/([\w.+-]+\+)?json\b/i.test(type));
  if (mediaType === undefined) {
    if (!required) return undefined;
    throw new Error(`its body is ${Object.keys(content).join(" or ") || "of no type"}, and only JSON can be sent`);
  }
  return {
    schema: fields(content[mediaType])?.schema ?? {},
    description: text(body.description),
    required,
    mediaType,
  };
}

/** Each name in braces has its parameter. */
function checkPath(path: string, parameters: readonly Parameter[]): void {
  for (const [, name] of path.matchAll(/\{([^{}]+)\}/g)) {
    if (!parameters.some((parameter) => parameter.place === "path" && parameter.name === name))
      throw new Error(`its path has {${name}}, and there is no such parameter`);
  }
}

function described(schema: Fields, description: string | undefined): Fields {
  return description === undefined ? schema : { ...schema, description };
}

/** The longest name of a tool or a property that every provider takes. */
const MAX_NAME = 64;

/** A name of letters, digits, `_` and `-` that is not taken yet. */
export function uniqueName(wanted: string, taken: Set<string>): string {
  const mangled = wanted.replace(/[^a-zA-Z0-9_-]+/g, "_").replace(/^_+|_+$/g, "") || "unnamed";
  let name = mangled.slice(0, MAX_NAME);
  for (let number = 2; taken.has(name); number += 1) {
    const suffix = `_${number}`;
    name = mangled.slice(0, MAX_NAME - suffix.length) + suffix;
  }
  taken.add(name);
  return name;
}
