// Local HTTP servers that suites start.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const MEDIA_TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".wasm": "application/wasm",
  ".svg": "image/svg+xml",
};

/** How the pages of every origin are let in to what is here. */
export const CORS = {
  "access-control-allow-origin": "*",
  "access-control-allow-headers": "*, authorization",
  "access-control-allow-methods": "GET, POST, DELETE",
  "access-control-expose-headers": "www-authenticate, mcp-session-id",
};

/**
 * Serves a folder on the loopback interface.
 *
 * @param {string} folder
 * @param {Record<string, string>} [headers] sent with every file
 * @param {Record<string, string>} [redirects] from a path to a path
 * @returns {Promise<{ url: string, stop: () => Promise<void> }>} `url` has no slash at its end
 */
export function serveFolder(folder, headers = {}, redirects = {}) {
  return listen(folderOf(folder, headers, redirects));
}

/**
 * What answers requests with the files of a folder.
 *
 * @param {string} folder
 * @param {Record<string, string>} [headers] sent with every file
 * @param {Record<string, string>} [redirects] from a path to a path
 * @returns {import("node:http").RequestListener}
 */
export function folderOf(folder, headers = {}, redirects = {}) {
  return async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname));
    if (path in redirects) return response.writeHead(302, { location: redirects[path] }).end();
    const file = join(folder, path.endsWith("/") ? `${path}index.html` : path);
    const found = file.startsWith(folder) && (await stat(file).catch(() => undefined))?.isFile();
    if (!found) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": MEDIA_TYPES[extname(file)] ?? "application/octet-stream", ...headers });
    createReadStream(file).pipe(response);
  };
}

/**
 * Answers requests on a free port of the loopback interface.
 *
 * @param {import("node:http").RequestListener} answer
 * @returns {Promise<{ url: string, stop: () => Promise<void> }>} `url` has no slash at its end
 */
export async function listen(answer) {
  const server = createServer(answer);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
