import { CrabletError } from "./error.js";

/**
 * The JSON of a request, read no further than a limit.
 *
 * @throws CrabletError `invalid-input` with the status 413 or 400.
 *
 * @internal
 */
export async function readJson(request: Request, maxBytes: number): Promise<unknown> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  const reader = request.body?.getReader();
  for (;;) {
    const { done = true, value } = (await reader?.read()) ?? {};
    if (done || value === undefined) break;
    bytes += value.byteLength;
    if (bytes > maxBytes) {
      await reader?.cancel().catch(() => {});
      throw refused(413, `the request has more than ${maxBytes} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
  try {
    return JSON.parse(text + decoder.decode());
  } catch {
    throw refused(400, "the request is not JSON");
  }
}

function refused(status: number, message: string): CrabletError {
  return new CrabletError({ kind: "invalid-input", message, status });
}
