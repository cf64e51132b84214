// The `fetch` of the page's agent: the platform's own, with what goes through it kept for the inspector.
import { signal } from "@preact/signals";
import { cutBody, type Exchange, keptBody, MAX_BODY, shownAddress, shownHeaders, withExchange } from "./exchange-log";

/** The exchanges, the newest last. */
export const exchanges = signal<readonly Exchange[]>([]);

let nextId = 0;

/** Does what `fetch` does, as crablet calls it. The answer is read beside its reader, and nothing waits for that. */
export const recordingFetch: typeof fetch = async (input, init) => {
  const begun: Exchange = {
    id: nextId++,
    method: init?.method ?? "GET",
    url: shownAddress(String(input)),
    at: performance.now(),
    until: undefined,
    requestHeaders: shownHeaders(new Headers(init?.headers)),
    requestBody: keptBody(textOf(init?.body)),
    status: undefined,
    responseHeaders: [],
    responseBody: "",
    error: undefined,
  };
  keep(begun);
  try {
    const response = await fetch(input, init);
    const answered = { ...begun, status: response.status, responseHeaders: shownHeaders(response.headers) };
    keep(answered);
    void follow(answered, response.clone());
    return response;
  } catch (error) {
    keep({ ...begun, until: performance.now(), error: words(error) });
    throw error;
  }
};

/** The same for one tool server: only what goes to its own address, so that nothing of an authorization is kept. */
export function recordingFetchOf(address: string): typeof fetch {
  const server = URL.parse(address)?.href;
  return (input, init) =>
    URL.parse(String(input))?.href === server ? recordingFetch(input, init) : fetch(input, init);
}

/** crablet sends text, as such or as its bytes. */
function textOf(body: BodyInit | null | undefined): string {
  if (body instanceof Uint8Array) return new TextDecoder().decode(body);
  return typeof body === "string" ? body : "";
}

/** Reads an answer to its end, and keeps what it says while it comes. */
async function follow(answered: Exchange, response: Response): Promise<void> {
  let responseBody = "";
  let left = 0;
  const whole = () => cutBody(responseBody, left);
  try {
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      const room = Math.max(0, MAX_BODY - responseBody.length);
      responseBody += part.value.slice(0, room);
      left += Math.max(0, part.value.length - room);
    }
    keep({ ...answered, responseBody: whole(), until: performance.now() });
  } catch (error) {
    keep({ ...answered, responseBody: whole(), until: performance.now(), error: words(error) });
  }
}

function keep(exchange: Exchange): void {
  exchanges.value = withExchange(exchanges.value, exchange);
}

function words(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
