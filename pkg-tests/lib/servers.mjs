// The servers that suites talk to: the demo model, the official MCP test server, and a folder of files for a browser.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, extname, join, normalize } from "node:path";
import { freePort, startServer } from "./process.mjs";

const require = createRequire(import.meta.url);

const MEDIA_TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".wasm": "application/wasm",
  ".svg": "image/svg+xml",
};

/**
 * Starts `@modelcontextprotocol/server-everything` over Streamable HTTP.
 *
 * @returns {Promise<{ url: string, stop: () => Promise<void> }>}
 */
export async function startEverythingServer() {
  const port = await freePort();
  const manifest = require.resolve("@modelcontextprotocol/server-everything/package.json");
  const server = await startServer(process.execPath, [join(dirname(manifest), "dist/index.js"), "streamableHttp"], {
    env: { PORT: String(port) },
    ready: /listening on port/,
  });
  return { url: `http://127.0.0.1:${port}/mcp`, stop: server.stop };
}

/**
 * Serves a folder on the loopback interface.
 *
 * @param {string} folder
 * @param {Record<string, string>} [headers] sent with every file
 * @returns {Promise<{ url: string, stop: () => Promise<void> }>} `url` has no slash at its end
 */
export async function serveFolder(folder, headers = {}) {
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname));
    const file = join(folder, path.endsWith("/") ? `${path}index.html` : path);
    const found = file.startsWith(folder) && (await stat(file).catch(() => undefined))?.isFile();
    if (!found) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": MEDIA_TYPES[extname(file)] ?? "application/octet-stream", ...headers });
    createReadStream(file).pipe(response);
  });
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
