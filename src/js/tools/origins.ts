import { invalidInput } from "../error.js";

/** Says whether requests to an address are allowed. */
export type OriginRule = (url: URL) => boolean;

/**
 * A rule that allows these origins: `https://example.com` that one, `https://*.example.com` every host below it, but not
 * `example.com` itself.
 *
 * @throws CrabletError `invalid-input` for anything else, such as an address with a path.
 */
export function originRule(origins: readonly string[]): OriginRule {
  const rules = origins.map(parseOrigin);
  return (url) => rules.some((allows) => allows(url));
}

/** An address as a model wrote it, where the rule allows it.
 *
 * @throws Error with a message for the model.
 */
export function allowedUrl(text: string, allows: OriginRule, origins: readonly string[]): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new Error("the address is not a URL: write all of it, such as https://example.com/page");
  if (url.username !== "" || url.password !== "")
    throw new Error("an address with a user name or password is not allowed");
  if (allows(url)) return url;
  throw new Error(`requests to ${url.origin} are not allowed; allowed are: ${origins.join(", ")}`);
}

function parseOrigin(text: string): OriginRule {
  const parts = /^(https?:)\/\/(\*\.)?([^/?#@\\*]+)\/?$/.exec(text);
  const host = parts?.[3];
  if (parts === null || host === undefined || !URL.canParse(`${parts[1]}//${host}`))
    throw invalidInput(
      `${JSON.stringify(text)} is not an origin: write one such as "https://example.com" or "https://*.example.com"`,
    );
  const origin = new URL(`${parts[1]}//${host}`);
  if (parts[2] === undefined) return (url) => url.origin === origin.origin;
  return (url) =>
    url.protocol === origin.protocol && url.port === origin.port && url.hostname.endsWith(`.${origin.hostname}`);
}
