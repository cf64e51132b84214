// What of a request is secret, and texts without it: servers repeat what they got, in headers, bodies and errors.

/** What stands in place of a secret. */
export const HIDDEN = "(hidden)";

/** What is shorter, in UTF-16 units, is no secret, and may be part of a word. */
const SHORTEST_SECRET = 8;

const SECRET_HEADER = /^(authorization|proxy-authorization|cookie|set-cookie|dpop)$|key|token|secret|mcp-session-id/i;

/** Parameters of addresses that hold no key. */
const PLAIN_PARAMETERS: readonly string[] = ["alt", "api-version"];

/** Whether a header carries a secret. */
export function isSecretHeader(name: string): boolean {
  return SECRET_HEADER.test(name);
}

/** Whether a parameter of an address may carry one: servers have names of their own for it. */
export function mayBeSecretParameter(name: string, value: string): boolean {
  return !PLAIN_PARAMETERS.includes(name) && value.length >= SHORTEST_SECRET;
}

/** The secrets of a request: what its headers and its address carry. */
export function secretsOf(address: string, headers: Headers): readonly string[] {
  const url = URL.parse(address);
  const words = [...headers]
    .filter(([name]) => isSecretHeader(name))
    .flatMap(([, value]) => [value, ...value.split(/[ ;,]+/)]);
  const values = url
    ? [...url.searchParams].filter((pair) => mayBeSecretParameter(...pair)).map(([, value]) => value)
    : [];
  const user = url ? [url.username, url.password].flatMap((part) => [part, decoded(part)]) : [];
  return [...words, ...values, ...user].filter((secret) => secret.length >= SHORTEST_SECRET);
}

/** A text without these secrets, as they are and as JSON, addresses and Base64 write them. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  // A form that begins with another would keep its end.
  const forms = [...new Set(secrets.flatMap(formsOf))].sort((one, other) => other.length - one.length);
  return forms.reduce((clean, form) => clean.replaceAll(form, HIDDEN), text);
}

function formsOf(secret: string): readonly string[] {
  const escaped = JSON.stringify(secret).slice(1, -1);
  const base64 = btoa(String.fromCharCode(...new TextEncoder().encode(secret))).replace(/=+$/, "");
  return [
    secret,
    escaped,
    JSON.stringify(escaped).slice(1, -1),
    encodeURIComponent(secret),
    new URLSearchParams([["", secret]]).toString().slice(1),
    base64,
    base64.replaceAll("+", "-").replaceAll("/", "_"),
  ];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
