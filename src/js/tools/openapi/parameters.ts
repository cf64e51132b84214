import { fields, type Fields, list, type OpenApiDocument, text } from "./document.js";

/** Where a parameter goes. */
export type Place = "path" | "query" | "header" | "cookie";

/** A parameter of an operation. */
export interface Parameter {
  readonly name: string;
  readonly place: Place;
  readonly required: boolean;
  readonly description: string | undefined;
  /** The schema as the document has it. */
  readonly schema: unknown;
  /** Whether the value is sent as JSON. */
  readonly isJson: boolean;
  readonly style: string;
  readonly explode: boolean;
  readonly allowReserved: boolean;
}

const PLACES: readonly string[] = ["path", "query", "header", "cookie"];
const DEFAULT_STYLE: Readonly<Record<Place, string>> = {
  path: "simple",
  query: "form",
  header: "simple",
  cookie: "form",
};

/** The headers that are not parameters, whatever a document says: they belong to the body, the answer and the supplier. */
const NOT_PARAMETERS: ReadonlySet<string> = new Set([
  "accept",
  "authorization",
  "content-length",
  "content-type",
  "cookie",
  "host",
]);

/**
 * The parameters of an operation: those of its path, with its own in the place of those of the same name and place.
 *
 * @throws Error when a reference leads nowhere.
 */
export function parametersOf(document: OpenApiDocument, path: Fields, operation: Fields): Parameter[] {
  const parameters = new Map<string, Parameter>();
  for (const given of [...list(path.parameters), ...list(operation.parameters)]) {
    const parameter = readParameter(document.resolve(given) ?? {});
    if (parameter !== undefined) parameters.set(`${parameter.place} ${parameter.name}`, parameter);
  }
  return [...parameters.values()];
}

function readParameter(given: Fields): Parameter | undefined {
  const name = text(given.name);
  const place = text(given.in) as Place | undefined;
  if (name === undefined || place === undefined || !PLACES.includes(place)) return undefined;
  if (place === "header" && NOT_PARAMETERS.has(name.toLowerCase())) return undefined;
  const content = fields(Object.values(fields(given.content) ?? {})[0]);
  const style = text(given.style) ?? DEFAULT_STYLE[place];
  return {
    name,
    place,
    required: place === "path" || given.required === true,
    description: text(given.description),
    schema: content?.schema ?? given.schema ?? {},
    isJson: content !== undefined,
    style,
    explode: typeof given.explode === "boolean" ? given.explode : style === "form",
    allowReserved: given.allowReserved === true,
  };
}

type Encode = (value: string) => string;

/** The parts of a query or a cookie that a value becomes, each `name=value`. */
export function pairs(parameter: Parameter, value: unknown, encode: Encode): string[] {
  const name = encode(parameter.name);
  if (parameter.isJson) return [`${name}=${encode(JSON.stringify(value))}`];
  if (Array.isArray(value)) {
    if (parameter.explode && parameter.style !== "deepObject")
      return value.map((item) => `${name}=${encode(plain(item))}`);
    const separator = SEPARATORS[parameter.style] ?? ",";
    return [`${name}=${value.map((item) => encode(plain(item))).join(separator)}`];
  }
  const object = fields(value);
  if (object === undefined) return [`${name}=${encode(plain(value))}`];
  if (parameter.style === "deepObject") return deepPairs(name, object, encode, 0);
  if (parameter.explode) return Object.entries(object).map(([key, item]) => `${encode(key)}=${encode(plain(item))}`);
  return [`${name}=${flat(object, encode, ",").join(",")}`];
}

/** The deepest object that a query takes. */
const MAX_DEEP_OBJECT = 8;

function deepPairs(name: string, object: Fields, encode: Encode, depth: number): string[] {
  return Object.entries(object).flatMap(([key, item]) => {
    const below = `${name}[${encode(key)}]`;
    const inner = fields(item);
    if (inner !== undefined && depth < MAX_DEEP_OBJECT) return deepPairs(below, inner, encode, depth + 1);
    const items = Array.isArray(item) ? item : [item];
    return items.map((one) => `${below}=${encode(plain(one))}`);
  });
}

const SEPARATORS: Readonly<Record<string, string>> = { spaceDelimited: "%20", pipeDelimited: "%7C" };

/** What a value becomes in a path, with the sign that its style puts first, or in a header, which is not encoded. */
export function segment(parameter: Parameter, value: unknown, encode: Encode): string {
  if (parameter.isJson) return encode(JSON.stringify(value));
  const { style, explode } = parameter;
  if (style === "matrix") return matrix(parameter, value, encode);
  const separator = style === "label" && explode ? "." : ",";
  const object = fields(value);
  const items = Array.isArray(value)
    ? value.map((item) => encode(plain(item)))
    : object === undefined
      ? [encode(plain(value))]
      : flat(object, encode, explode ? "=" : ",");
  return (style === "label" ? "." : "") + items.join(separator);
}

function matrix(parameter: Parameter, value: unknown, encode: Encode): string {
  const name = encode(parameter.name);
  const object = fields(value);
  if (Array.isArray(value) && parameter.explode) return value.map((item) => `;${name}=${encode(plain(item))}`).join("");
  if (Array.isArray(value)) return `;${name}=${value.map((item) => encode(plain(item))).join(",")}`;
  if (object === undefined) return `;${name}=${encode(plain(value))}`;
  if (parameter.explode)
    return flat(object, encode, "=")
      .map((pair) => `;${pair}`)
      .join("");
  return `;${name}=${flat(object, encode, ",").join(",")}`;
}

function flat(object: Fields, encode: Encode, separator: string): string[] {
  return Object.entries(object).map(([key, item]) => `${encode(key)}${separator}${encode(plain(item))}`);
}

/** A value as text: what is neither text nor number is told as JSON. */
function plain(value: unknown): string {
  return typeof value === "string"
    ? value
    : typeof value === "object" && value !== null
      ? JSON.stringify(value)
      : String(value);
}

/** Encodes all but what a query may hold unencoded. */
export const encodeReserved: Encode = (value) =>
  encodeURIComponent(value).replace(/%(3A|2F|3F|5B|5D|40|21|24|27|28|29|2A|2C|3B|3D)/g, decodeURIComponent);
