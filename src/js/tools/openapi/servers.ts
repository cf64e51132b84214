import { invalidInput } from "../../error.js";
import type { OriginRule } from "../origins.js";
import { fields, type Fields, list, text } from "./document.js";

/**
 * The address that an operation's path is put behind: the first server that the operation, its path or the document names.
 *
 * @throws Error when there is none, or requests to it are not allowed.
 */
export function serverOf(holders: readonly Fields[], documentUrl: URL | undefined, allows: OriginRule): URL {
  const servers = holders.map((holder) => list(holder.servers)).find((found) => found.length > 0) ?? [];
  const server = fields(servers[0]);
  const address = server === undefined ? "/" : filled(text(server.url) ?? "/", fields(server.variables) ?? {});
  if (!URL.canParse(address, documentUrl))
    throw new Error(`its server ${JSON.stringify(address)} is no whole address: give the option server`);
  const url = new URL(address, documentUrl);
  if (!allows(url))
    throw new Error(`requests to its server ${url.origin} are not allowed: add it to the option origins`);
  return url;
}

/** The server that the caller chose. */
export function chosenServer(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "")
    throw invalidInput(
      `the option server is not an http or https address without a user name: ${JSON.stringify(address)}`,
    );
  return url;
}

function filled(address: string, variables: Fields): string {
  return address.replace(/\{([^{}]+)\}/g, (_, name: string) => text(fields(variables[name])?.default) ?? "");
}
