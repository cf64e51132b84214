import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startPageServer } from "./page-server.mjs";

let folder;
let server;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "crablet-page-"));
  await mkdir(join(folder, "page"));
  await writeFile(join(folder, "page/index.html"), "<p>hi</p>");
  await writeFile(join(folder, "secret.json"), "{}");
  server = await startPageServer({ folder: join(folder, "page") });
  server.publish("/demo-x.json", { a: 1 });
});
after(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

/** A request as written, without the tidying that fetch does. */
const raw = (path, headers = {}) =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(server.origin);
    request({ hostname, port, path, headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on("error", reject)
      .end();
  });

test("serves the page and what was published", async () => {
  const page = await fetch(`${server.origin}/`);
  assert.equal(await page.text(), "<p>hi</p>");
  assert.match(page.headers.get("content-security-policy"), /frame-ancestors 'none'/);
  assert.deepEqual(await (await fetch(`${server.origin}/demo-x.json`)).json(), { a: 1 });
});

test("serves nothing outside the folder", async () => {
  for (const path of ["/../secret.json", "/%2e%2e/secret.json", "/..%2fsecret.json", "/none.html", "/%%%"]) {
    assert.notEqual(await raw(path).catch(() => "closed"), 200, path);
  }
});

test("refuses a host name that merely leads here", async () => {
  assert.equal(await raw("/demo-x.json", { host: "evil.example" }), 421);
});
