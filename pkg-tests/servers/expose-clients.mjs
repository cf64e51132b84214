// The official TypeScript clients against `crablet-shim expose`, whose tools are those of the page fixtures/expose:
// `node expose-clients.mjs COMMAND ORIGIN`. A line per client, and an exit code of 1 when one is not content.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const [command, origin] = process.argv.slice(2);
const info = { name: "official", version: "1.0.0" };
const stdio = { command, args: ["expose"], env: { ...process.env } };

/** Each gives a client and a promise of its next news that the list changed. */
const clients = {
  "client 2.4.0, stateless": () => current("auto", "2026-07-28"),
  "client 2.4.0, handshake": () => current("legacy", "2025-11-25"),
  async "sdk 1.32.2"() {
    const client = new OldClient(info);
    const news = new News();
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => news.came());
    await client.connect(new OldTransport(stdio));
    // The old client has a schema for its second parameter.
    const call = (name, given, options) => client.callTool({ name, arguments: given }, undefined, options);
    return { client, news, call };
  },
};

async function current(mode, version) {
  const client = new Client(info, { versionNegotiation: { mode } });
  const news = new News();
  client.setNotificationHandler("notifications/tools/list_changed", () => news.came());
  await client.connect(new StdioClientTransport(stdio));
  assert.equal(client.getNegotiatedProtocolVersion(), version);
  if (mode === "auto") await client.listen({ toolsListChanged: true });
  return { client, news, call: (name, given, options) => client.callTool({ name, arguments: given }, options) };
}

class News {
  #count = 0;
  #wake = () => undefined;

  came() {
    this.#count += 1;
    this.#wake();
  }

  async next() {
    while (this.#count === 0) await new Promise((resolve) => (this.#wake = resolve));
    this.#count = 0;
  }
}

async function check({ client, news, call }) {
  /** The names of agents by those of the page, once there are so many. */
  const listed = async (count) => {
    for (;;) {
      // The stateless client keeps a list for as long as the server says: not at all.
      const { tools } = await client.listTools();
      for (const { title, description } of tools) {
        assert.ok(title.startsWith(`${origin}: `), title);
        assert.ok(description.includes(origin), description);
      }
      if (tools.length === count)
        return Object.fromEntries(tools.map(({ name, title }) => [title.split(": ")[1], name]));
      await news.next();
    }
  };
  const names = await listed(7);
  assert.equal(names.forget, undefined, "a destructive tool is withheld");
  for (const name of Object.values(names)) assert.match(name, /^[A-Za-z0-9_-]{1,48}$/);

  const echoed = await call(names.echo, { text: "Grüße 🦀" });
  assert.deepEqual(echoed.structuredContent, { text: "Grüße 🦀" });
  assert.equal((await call(names.where, {})).content[0].text, `notes at ${origin}`);
  const invalid = await call(names.echo, {});
  assert.equal(invalid.isError, true, "invalid arguments are for the model to read");
  await assert.rejects(call("nothing", {}), /there is no tool/);

  const reports = [];
  const counted = await call(names.count, { to: 30 }, { onprogress: (report) => reports.push(report) });
  assert.equal(counted.content[0].text, "counted to 30");
  // The clients drop reports that they read together with the answer: which ones, the machine decides.
  assert.ok(reports.length > 0, "no progress was reported");
  reports.forEach(({ progress, total, message }, index) => {
    assert.deepEqual([progress, total, message], [index + 1, 30, `at ${index + 1}`]);
  });
  const [slow, quick] = await Promise.all([call(names.count, { to: 10 }), call(names.echo, { text: "x" })]);
  assert.deepEqual([slow.content[0].text, quick.structuredContent.text], ["counted to 10", "x"]);

  const before = Number((await call(names.aborted, {})).content[0].text);
  const abort = new AbortController();
  const waiting = call(names.wait, {}, { signal: abort.signal, onprogress: () => abort.abort() });
  await assert.rejects(waiting, /abort/i);
  let after = before;
  while (after === before) after = Number((await call(names.aborted, {})).content[0].text);
  assert.equal(after, before + 1, "the page was told that nobody waits any more");

  await call(names.change, { extra: true });
  const more = await listed(8);
  assert.equal((await call(more.extra, {})).content[0].text, "extra");
  await call(names.change, { extra: false });
  await listed(7);
  assert.match((await call(more.extra, {})).content[0].text, /not offered at the moment/);

  const left = await call(names.reload, {});
  assert.equal(left.isError, true, "a page that goes is a failed result");
  assert.match(left.content[0].text, /no answer of the page/);
  let again = await call(names.echo, { text: "again" });
  while (again.isError) {
    await news.next();
    again = await call(names.echo, { text: "again" });
  }
  assert.deepEqual(again.structuredContent, { text: "again" });
  assert.deepEqual(await listed(7), names, "the page is back under the same names");
}

for (const [name, connect] of Object.entries(clients)) {
  try {
    const connected = await connect();
    try {
      await check(connected);
    } finally {
      await connected.client.close();
    }
    console.log(`ok ${name}`);
  } catch (error) {
    console.log(`FAILED ${name}\n${error.stack}`);
    process.exitCode = 1;
  }
}
