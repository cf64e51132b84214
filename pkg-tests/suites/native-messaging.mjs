// A Manifest V3 extension in a real Chromium, which starts the installed shim by native messaging and uses real stdio servers.
import assert from "node:assert/strict";
import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sampleServer } from "../../www/demo/setup.mjs";
import { withPage } from "../lib/browser.mjs";
import { run } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";

const STRANGER = "ponmlkjihgfedcbaponmlkjihgfedcba";

/** How often the table of processes is looked at until one that is to end is gone: half a minute. */
const LOOKS = 300;

export default async function nativeMessaging(project) {
  await run("cargo", ["build", "--quiet", "-p", "crablet-shim"], { cwd: repository, timeout: 600_000 });
  const extension = join(project.tests, "fixtures/native-messaging-extension");
  await cp(join(project.folder, "node_modules/crablet"), join(extension, "crablet"), {
    recursive: true,
    dereference: true,
  });
  const home = join(project.folder, "native-messaging");
  const files = join(home, "files");
  await mkdir(files, { recursive: true });
  await writeFile(join(files, "note.txt"), "a word from the file");
  const config = join(home, "servers.json");
  const server = await sampleServer(files);
  await writeFile(config, JSON.stringify({ mcpServers: { files: server, more: server, others: server } }));

  await withPage((tab, profile) => inBrowser(tab, { profile, home, files, config }), { extension });
  await untilGone(config);
  return "an extension is refused until the shim is installed for it, reads and writes megabytes through it, and leaves nothing";
}

async function inBrowser(tab, { profile, home, files, config }) {
  const worker = tab.context().serviceWorkers()[0] ?? (await tab.context().waitForEvent("serviceworker"));
  const page = new URL("page.html", worker.url());
  const id = page.host;
  await tab.goto(page.href);
  const ask = (action, given) =>
    tab
      .evaluate((message) => chrome.runtime.sendMessage(message), { action, ...given })
      .then(({ value, error }) => {
        if (error !== undefined) throw Object.assign(new Error(error.message), { kind: error.kind });
        return value;
      });
  const shim = (...args) =>
    run(join(repository, "target/debug/crablet-shim"), args, {
      env: { HOME: home, XDG_CONFIG_HOME: undefined, CRABLET_STATE_DIR: join(home, "state") },
    });
  const place = ["--browser", "chromium", "--user-data-dir", profile];
  const install = (extension) =>
    shim("install", ...place, "--extension", extension, "--server", "files", "--server", "more", "--config", config);

  await assert.rejects(ask("connect", { server: "files" }), {
    kind: "network",
    message: new RegExp(`no native messaging host dev\\.crablet\\.shim .*crablet-shim install .*--extension ${id}`),
  });
  await install(STRANGER);
  await assert.rejects(ask("connect", { server: "files" }), { kind: "auth", message: /was not installed for this/ });
  await install(id);
  await assert.rejects(ask("connect", { server: "others" }), {
    kind: "auth",
    message: new RegExp(`the extension ${id} may not use the server "others"`),
  });

  assert.ok((await ask("connect", { server: "files" })).includes("read_text_file"));
  assert.ok((await ask("connect", { server: "more" })).includes("write_file"));
  assert.equal((await shims(config)).length, 1, "two servers share one process of the shim");
  const note = join(files, "note.txt");
  assert.equal((await ask("read", { server: "files", path: note })).end, "a word from the file");

  const long = join(files, "long.txt");
  const text = 'a line with € and "quotes"\n';
  const times = 120_000;
  await ask("write", { server: "more", path: long, text, times });
  assert.equal(await readFile(long, "utf8"), text.repeat(times));
  assert.deepEqual(await ask("read", { server: "files", path: long }), {
    length: text.length * times,
    end: text.repeat(2).slice(-20),
  });

  // One server goes, the other stays.
  await ask("close", { server: "more" });
  assert.equal((await ask("read", { server: "files", path: note })).end, "a word from the file");

  // A shim that is killed is told of, and the next call starts another.
  const [killed] = await shims(config);
  const closed = async () => (await ask("closed")).filter((server) => server === "files").length;
  // The refusals above were told of too.
  const closedBefore = await closed();
  process.kill(killed, "SIGKILL");
  await untilTrue(async () => (await closed()) > closedBefore, "no word of the shim that was killed");
  assert.equal((await ask("read", { server: "files", path: note })).end, "a word from the file");
  assert.notEqual((await shims(config))[0], killed);

  // Without connections there is no shim.
  await ask("close", { server: "files" });
  await untilGone(config);

  // The service worker of an extension may be stopped at any time, and takes the shim along.
  await ask("connect", { server: "files" });
  const session = await tab.context().newCDPSession(tab);
  await session.send("ServiceWorker.enable");
  await session.send("ServiceWorker.stopAllWorkers");
  await untilGone(config);
  assert.ok((await ask("connect", { server: "files" })).includes("read_text_file"));

  await shim("uninstall", ...place);
  await assert.rejects(ask("connect", { server: "more" }), { kind: "auth" });
}

/** The process ids of shims with this configuration. */
async function shims(config) {
  const found = [];
  for (const id of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const words = await readFile(`/proc/${id}/cmdline`, "utf8").then(
      (line) => line.split("\0"),
      () => [],
    );
    if (words.includes("native-messaging") && words.includes(config)) found.push(Number(id));
  }
  return found;
}

/** Waits until nothing runs that the configuration names, neither shim nor server. */
async function untilGone(config) {
  const folder = join(config, "../files");
  await untilTrue(async () => {
    for (const id of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
      const line = await readFile(`/proc/${id}/cmdline`, "utf8").catch(() => "");
      if (line.includes(config) || line.includes(folder)) return false;
    }
    return true;
  }, "a shim or one of its servers is left");
}

async function untilTrue(look, otherwise) {
  for (let looks = 0; looks < LOOKS; looks += 1) {
    if (await look()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(otherwise);
}
