// What `scripts/audit.mjs` does when nobody answers: it comes to its end, and says of each lock file that it was not looked at.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const script = join(dirname(fileURLToPath(import.meta.url)), "audit.mjs");

/** How long one audit may take here, in seconds. */
const LIMIT = "2";

/** The longest that all of them may take: far more than they do, and less than a suite has. */
const PATIENCE_MS = 120_000;

/** Runs the audits with this environment; fails when they do not come to an end. */
function auditWith(environment) {
  return new Promise((resolve, reject) => {
    const options = { env: { ...process.env, ...environment }, timeout: PATIENCE_MS, killSignal: "SIGKILL" };
    execFile(process.execPath, [script, "--limit", LIMIT], options, (error, stdout, stderr) => {
      if (error?.killed) reject(new Error(`not done within ${PATIENCE_MS} ms: ${stdout}`));
      else resolve({ code: error?.code ?? 0, stdout, stderr });
    });
  });
}

const everywhere = (url) => ({ npm_config_registry: url, HTTPS_PROXY: url, https_proxy: url });

/** That each of them is told, and that nobody can take the end for a look that found nothing. */
function saysThatItCouldNotLook({ code, stdout }) {
  assert.equal(code, 0, stdout);
  assert.match(stdout, /^not looked at: src\/js, what ships: |^not looked at: www, what ships: /m);
  assert.match(stdout, /^not looked at: Cargo\.lock: ./m);
  const [, answered, asked, left] = /^npm: (\d+) of (\d+) audits answered, (\d+) not looked at$/m.exec(stdout);
  assert.equal(Number(answered) + Number(left), Number(asked));
  assert.equal(stdout.match(/^not looked at: (?!Cargo)/gm).length, Number(left));
  assert.match(stdout, /^crates: not looked at$/m);
}

test("a registry that takes connections and never answers is told, in bounded time", async () => {
  const sockets = new Set();
  const server = createServer((socket) => sockets.add(socket.on("error", () => {})));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cache = await mkdtemp(join(tmpdir(), "crablet-audit-"));
  try {
    const url = `http://127.0.0.1:${server.address().port}/`;
    const done = await auditWith({ ...everywhere(url), npm_config_cache: cache });
    saysThatItCouldNotLook(done);
    assert.ok(sockets.size > 1, "the server was asked");
    assert.match(done.stdout, /npm had no answer within 2 s, and was ended/);
    assert.match(done.stdout, /^not looked at: Cargo\.lock: cargo-deny had no answer within 2 s, and was ended/m);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
    await rm(cache, { recursive: true, force: true });
  }
});

test("a registry that cannot be reached is told", async () => {
  // A port that was free a moment ago, of this machine.
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${server.address().port}/`;
  server.close();
  await once(server, "close");
  const cache = await mkdtemp(join(tmpdir(), "crablet-audit-"));
  try {
    saysThatItCouldNotLook(await auditWith({ ...everywhere(url), npm_config_cache: cache }));
  } finally {
    await rm(cache, { recursive: true, force: true });
  }
});

test("programs that do not listen, and what they leave behind at their pipes, are ended too", async () => {
  const folder = await mkdtemp(join(tmpdir(), "crablet-audit-"));
  try {
    for (const name of ["npm", "cargo-deny"]) {
      await writeFile(join(folder, name), "#!/bin/sh\ntrap '' TERM INT\nsleep 1000 &\nsleep 1000\n");
      await chmod(join(folder, name), 0o755);
    }
    const done = await auditWith({ PATH: `${folder}${delimiter}${process.env.PATH}` });
    saysThatItCouldNotLook(done);
    assert.match(done.stdout, /^npm: 0 of /m);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
