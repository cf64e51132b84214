import { invalidInput } from "../error.js";

/** Gives the values of a template's names in an address, or `undefined` when it does not fit. */
export type UriMatcher = (uri: string) => Record<string, string> | undefined;

/**
 * A URI template of literals, `{name}` and `{+name}` (RFC 6570, levels 1 and 2).
 *
 * @throws CrabletError `invalid-input` for an expression of another kind, or two without anything between them.
 */
export function uriTemplate(template: string): UriMatcher {
  const parts = template.split(/\{(\+?\w+)\}/);
  const literals = parts.filter((_, index) => index % 2 === 0);
  const names = parts.filter((_, index) => index % 2 === 1);
  if (literals.some((literal) => /[{}]/.test(literal)) || literals.slice(1, -1).includes(""))
    throw invalidInput(
      `${JSON.stringify(template)} is not a URI template this server takes: literals, {name} and {+name}`,
    );
  return (uri) => {
    const [first = "", ...others] = literals;
    if (!uri.startsWith(first)) return undefined;
    let rest = uri.slice(first.length);
    const values: [string, string][] = [];
    for (const [index, literal] of others.entries()) {
      const isLast = index === others.length - 1;
      const at = !isLast ? rest.indexOf(literal) : rest.endsWith(literal) ? rest.length - literal.length : -1;
      const value = rest.slice(0, Math.max(at, 0));
      const name = names[index] ?? "";
      if (value === "" || (!name.startsWith("+") && value.includes("/"))) return undefined;
      values.push([name.replace("+", ""), value]);
      rest = rest.slice(at + literal.length);
    }
    return rest === "" ? Object.fromEntries(values) : undefined;
  };
}
