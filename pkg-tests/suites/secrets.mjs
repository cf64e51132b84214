// Keys that are planted in a page of a real Chromium, against a server that repeats all that it gets: none is on the console, in an
// error of the page, in what the page keeps or shows, or in a request to another origin.
import { createServer } from "node:http";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { withPage } from "../lib/browser.mjs";
import { leakIn, plainPlanted, planted } from "../lib/planted.mjs";
import { copyPackage } from "../lib/project.mjs";
import { serveFolder } from "../lib/servers.mjs";

/** A token of the shim in its form, with a secret that is found. */
const SHIM_TOKEN = ["id-of-it!", "planted-token-of-a-shim-32-bytes"]
  .map((part) => Buffer.from(part).toString("base64url"))
  .join(".");

const KEYS = {
  key: planted("key"),
  gateway: planted("gateway"),
  id: plainPlanted("access"),
  secret: planted("secret"),
  session: planted("session"),
  token: SHIM_TOKEN,
};

/** How the server answers, by the status: a refusal, a failure in a stream, and a redirect to another origin. */
const ANSWERS = [401, 200, 307];

export default async function secrets(project) {
  const folder = join(project.folder, "secrets-page");
  await cp(join(project.tests, "fixtures/secrets"), folder, { recursive: true });
  await copyPackage(project, folder);
  const site = await serveFolder(folder);
  const strangers = [];
  const stranger = await listen(async (request, response) => {
    strangers.push(await received(request));
    response.writeHead(200, CORS).end("{}");
  });
  let status;
  let asked = "";
  const server = await listen(async (request, response) => {
    const got = await received(request);
    if (request.method === "OPTIONS") return response.writeHead(204, CORS).end();
    asked += got;
    const told = JSON.stringify({ error: { message: `refused ${got} here`, type: got } });
    if (status === 307) return response.writeHead(307, { ...CORS, location: stranger.url }).end();
    if (status === 401) return response.writeHead(401, { ...CORS, "content-type": "application/json" }).end(told);
    return response
      .writeHead(200, { ...CORS, "content-type": "text/event-stream" })
      .end(`event: error\ndata: ${told}\n\n`);
  });
  const seen = [];
  try {
    await withPage(async (page) => {
      watch(page, seen, [site.url, server.url]);
      await page.goto(`${site.url}/index.html`);
      await page.waitForFunction(() => window.runs !== undefined);
      const runs = await page.evaluate(() => Object.keys(window.runs));
      for (const run of runs) {
        for (status of ANSWERS) {
          await page.evaluate(([name, url, keys]) => window.runs[name](url, keys), [run, server.url, KEYS]);
        }
      }
      seen.push(["the page", await page.content()], ["what the page keeps", await keptIn(page)]);
      if (seen.filter(([where]) => where === "the console").length < 10) throw new Error("nothing was on the console");
      if (!seen.at(-1)[1].includes("crablet-session")) throw new Error("nothing was kept");
    }).catch((error) => {
      // The rejections that the page left alone are errors of the page, and were looked at.
      if (!/^the page threw: /.test(error.message)) throw error;
      seen.push(["errors of the page", error.message]);
    });
  } finally {
    await Promise.all([site.stop(), server.stop(), stranger.stop()]);
  }
  if (leakIn(asked) === undefined) throw new Error("the server got no key");
  seen.push(...strangers.map((request) => ["a request to another origin", request]));
  for (const [where, text] of seen) {
    const leak = leakIn(text);
    if (leak !== undefined) throw new Error(`${where} shows a key: ${leak}`);
  }
  return `${seen.length} texts of a page in Chromium without a key`;
}

/** Collects all that a page says, and its requests to others than these origins. */
function watch(page, seen, origins) {
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
function keptIn(page) {
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

const CORS = {
  "access-control-allow-origin": "*",
  "access-control-allow-headers": "*, authorization",
  "access-control-expose-headers": "*",
};

async function received(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return `${request.url} ${Object.values(request.headers).join(" ")} ${Buffer.concat(pieces)}`;
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
