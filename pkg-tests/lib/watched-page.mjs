// A page of a real browser with a server that repeats all that it gets: what the page says, keeps and sends elsewhere.
import { createServer } from "node:http";
import { formsOf, plantedIn } from "./planted.mjs";

/** Collects all that a page says, and its requests to others than these origins. */
export function watch(page, seen, origins) {
  const whole = (value) => JSON.stringify(value, (_, part) => (typeof part === "bigint" ? String(part) : part));
  page.on("console", async (message) => {
    seen.push(["the console", message.text()]);
    for (const argument of message.args()) {
      const value = await argument
        .evaluate((given) => (given instanceof Error ? [String(given), given.stack, { ...given }] : given))
        .catch(() => undefined);
      seen.push(["the console", whole(value) ?? ""]);
    }
  });
  page.on("pageerror", (error) => seen.push(["an error of the page", `${error.message}\n${error.stack}`]));
  page.on("request", (request) => {
    const own = origins.some((origin) => request.url().startsWith(origin));
    if (!own) seen.push(["a request to another origin", whole([request.url(), request.headers(), request.postData()])]);
  });
}

/** Everything in IndexedDB and in the storages, as text. */
export function keptIn(page) {
  return page.evaluate(async () => {
    const answered = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
    const kept = [{ ...localStorage }, { ...sessionStorage }, document.cookie];
    for (const { name } of await indexedDB.databases()) {
      const database = await answered(indexedDB.open(name));
      for (const store of database.objectStoreNames) {
        const records = database.transaction(store).objectStore(store);
        kept.push(await answered(records.getAllKeys()), await answered(records.getAll()));
      }
      database.close();
    }
    return JSON.stringify(kept);
  });
}

/** How the pages of every origin are let in to what is here, whatever they send. */
const CORS = {
  "access-control-allow-origin": "*",
  "access-control-allow-headers": "*, authorization",
  "access-control-allow-methods": "GET, POST, DELETE",
  "access-control-expose-headers": "*, www-authenticate",
};

/**
 * Starts a server that repeats what it gets, and another one to which it sends who asks.
 *
 * @returns {Promise<{ url: string, answer: "refusal" | "failure" | "redirect", asked: string, strangers: string[], stop: () => Promise<void> }>}
 *   `answer` may be set: a status of its own, a failure in a stream, or a redirect to another origin. `asked` is all that it got,
 *   `strangers` what the other one got.
 */
export async function startRepeating() {
  const strangers = [];
  const stranger = await listen(async (request, response) => {
    strangers.push(await received(request));
    response.writeHead(200, CORS).end("{}");
  });
  const repeating = { answer: "refusal", asked: "", strangers };
  const server = await listen(async (request, response) => {
    const got = await received(request);
    if (request.method === "OPTIONS") return response.writeHead(204, CORS).end();
    repeating.asked += got;
    const repeated = {
      "x-repeated": encodeURIComponent(plantedIn(got).join(" ")),
      "x-repeated-too": got.replace(/[^ -~]/g, " "),
    };
    const told = JSON.stringify({ error: { message: `refused ${got} here`, type: got } });
    switch (repeating.answer) {
      case "redirect":
        return response.writeHead(307, { ...CORS, location: stranger.url }).end();
      case "refusal":
        return response.writeHead(401, { ...CORS, ...repeated, "content-type": "application/json" }).end(told);
      default:
        return response
          .writeHead(200, { ...CORS, ...repeated, "content-type": "text/event-stream" })
          .end(`event: error\ndata: ${told}\n\n`);
    }
  });
  return Object.assign(repeating, {
    url: server.url,
    stop: () => Promise.all([server.stop(), stranger.stop()]),
  });
}

async function received(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const values = Object.values(request.headers).join(" ");
  const written = plantedIn(`${decodeURIComponent(request.url)} ${values}`).flatMap(formsOf);
  return `${request.url} ${values} ${written.join(" ")} ${Buffer.concat(pieces)}`;
}

async function listen(handle) {
  const server = createServer(handle);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
