// Serves the built page on the loopback interface, and the demo's configuration at a path that only its address holds.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize, sep } from "node:path";
import { pipeline } from "node:stream/promises";

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".json": "application/json",
  ".wasm": "application/wasm",
  ".png": "image/png",
};

/** The page's own policy stands in its head; this is what only a header can say. */
const HEADERS = {
  "content-security-policy": "frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};

/**
 * Starts the server.
 *
 * @param {{ folder: string, port?: number }} options `folder` is the built page
 * @returns {Promise<{ origin: string, publish: (path: string, value: unknown) => void, close: () => Promise<void> }>}
 *   `publish` serves a value as JSON at a path
 */
export async function startPageServer({ folder, port = 0 }) {
  const published = new Map();
  let host = "";
  const server = createServer((request, response) => {
    // A name of elsewhere that leads here (DNS rebinding) must not read the configuration.
    if (request.headers.host !== host) return refuse(response, 421);
    if (request.method !== "GET" && request.method !== "HEAD") return refuse(response, 405);
    const { pathname } = new URL(request.url ?? "/", `http://${host}`);
    const value = published.get(pathname);
    if (value !== undefined) return response.writeHead(200, { ...HEADERS, "content-type": TYPES[".json"] }).end(value);
    sendFile(folder, pathname, response).catch(() => response.destroy());
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  host = `127.0.0.1:${server.address().port}`;
  return {
    origin: `http://${host}`,
    publish: (path, value) => published.set(path, JSON.stringify(value)),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function sendFile(folder, pathname, response) {
  const path = normalize(join(folder, decodeURIComponent(pathname.endsWith("/") ? `${pathname}index.html` : pathname)));
  const type = TYPES[extname(path)];
  const info = path.startsWith(folder + sep) && type ? await stat(path).catch(() => undefined) : undefined;
  if (!info?.isFile()) return refuse(response, 404);
  response.writeHead(200, { ...HEADERS, "content-type": type, "content-length": info.size });
  await pipeline(createReadStream(path), response);
}

function refuse(response, status) {
  response.writeHead(status, { ...HEADERS, "content-type": "text/plain" }).end();
}
