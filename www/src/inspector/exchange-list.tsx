// What went over HTTP: each request with its headers and body, and what came back, as it was written.
import { ChevronIcon } from "../ui/icons";
import { Scrollable } from "../ui/scrollable";
import type { Exchange } from "./exchange-log";
import { Newest } from "./newest";
import { exchanges } from "./recording";
import { milliseconds } from "./units";

export function ExchangeList() {
  if (exchanges.value.length === 0) return null;
  return (
    <section class="panel-section" aria-labelledby="requests-heading">
      <h3 id="requests-heading">Requests</h3>
      <p class="help">What goes to models and to tool servers over HTTP, without keys and tokens.</p>
      <Newest
        entries={exchanges.value}
        show={(shown) => (
          <ol class="events exchanges">
            {shown.map((exchange) => (
              <li key={exchange.id} data-failed={isFailed(exchange) ? "yes" : undefined}>
                <details>
                  <summary>
                    <ChevronIcon />
                    <code>{exchange.method}</code>
                    <span class="exchange-place">{placeOf(exchange.url)}</span>
                    <span class="exchange-status">{exchange.status ?? (exchange.error ? "failed" : "…")}</span>
                    <span class="event-time">
                      {exchange.until === undefined ? "" : milliseconds(exchange.until - exchange.at)}
                    </span>
                  </summary>
                  <Written exchange={exchange} />
                </details>
              </li>
            ))}
          </ol>
        )}
      />
    </section>
  );
}

function Written({ exchange }: { readonly exchange: Exchange }) {
  const { method, url, requestHeaders, requestBody, status, responseHeaders, responseBody, error } = exchange;
  return (
    <>
      <h4>Request</h4>
      <Scrollable>{`${method} ${url}\n${lines(requestHeaders)}\n\n${printed(requestBody)}`}</Scrollable>
      <h4>Response</h4>
      {status !== undefined && (
        <Scrollable>{`${status}\n${lines(responseHeaders)}\n\n${printed(responseBody)}`}</Scrollable>
      )}
      {error !== undefined && <p class="problem">{error}</p>}
    </>
  );
}

function isFailed({ status, error }: Exchange): boolean {
  return error !== undefined || (status !== undefined && status >= 400);
}

/** Where a request went, in short. */
function placeOf(address: string): string {
  const url = URL.parse(address);
  return url ? `${url.host}${url.pathname}` : address;
}

function lines(headers: Exchange["requestHeaders"]): string {
  return headers.map(([name, value]) => `${name}: ${value}`).join("\n");
}

/** A body that is JSON in a form that can be read, any other as it is. */
function printed(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), undefined, 2);
  } catch {
    return body;
  }
}
