// The `fetch` of the page's agent: the platform's own, with what goes through it kept for the inspector.
import { signal } from "@preact/signals";
import { cutBody, type Exchange, keptBody, MAX_BODY, shownAddress, shownHeaders, withExchange } from "./exchange-log";
import { secretsOf, withoutSecrets } from "./hiding";

/** The exchanges, the newest last. */
export const exchanges = signal<readonly Exchange[]>([]);

/** How much more of an answer is read than is kept, in UTF-16 units: a secret that the cut goes through is still found whole. */
const BEYOND = 10_000;

let nextId = 0;

/** Does what `fetch` does, as crablet calls it. The answer is read beside its reader, and nothing waits for that. */
export const recordingFetch: typeof fetch = async (input, init) => {
  const headers = new Headers(init?.headers);
  const secrets = secretsOf(String(input), headers);
  const begun: Exchange = {
    id: nextId++,
    method: init?.method ?? "GET",
    url: shownAddress(String(input)),
    at: performance.now(),
    until: undefined,
    requestHeaders: shownHeaders(headers, secrets),
    requestBody: keptBody(withoutSecrets(textOf(init?.body), secrets)),
    status: undefined,
    responseHeaders: [],
    responseBody: "",
    error: undefined,
  };
  keep(begun);
  try {
    const response = await fetch(input, init);
    const answered = { ...begun, status: response.status, responseHeaders: shownHeaders(response.headers, secrets) };
    keep(answered);
    void follow(answered, response.clone(), secrets);
    return response;
  } catch (error) {
    keep({ ...begun, until: performance.now(), error: withoutSecrets(words(error), secrets) });
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
async function follow(answered: Exchange, response: Response, secrets: readonly string[]): Promise<void> {
  let begin = "";
  let length = 0;
  const whole = () => {
    const clean = withoutSecrets(begin, secrets);
    return cutBody(clean.slice(0, MAX_BODY), length - Math.min(begin.length, MAX_BODY));
  };
  try {
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      begin += part.value.slice(0, Math.max(0, MAX_BODY + BEYOND - begin.length));
      length += part.value.length;
    }
    keep({ ...answered, responseBody: whole(), until: performance.now() });
  } catch (error) {
    const told = withoutSecrets(words(error), secrets);
    keep({ ...answered, responseBody: whole(), until: performance.now(), error: told });
  }
}

function keep(exchange: Exchange): void {
  exchanges.value = withExchange(exchanges.value, exchange);
}

function words(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
