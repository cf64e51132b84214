import { invalidInput } from "./error.js";

/**
 * @internal Headers as the platform reads them. Its own error would show the value of one that cannot be sent, which may be a key.
 *
 * @throws CrabletError `invalid-input` when one cannot be sent.
 */
export function readHeaders(headers: HeadersInit | undefined): Headers {
  try {
    return new Headers(headers);
  } catch {
    throw invalidInput("a header has a name or value that cannot be sent");
  }
}
