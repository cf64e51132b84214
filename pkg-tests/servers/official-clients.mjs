// The official clients against a server: `node official-clients.mjs COMMAND SHIM PYTHON`, which are the example mcp_server, the
// program crablet-shim and a Python with the packages of the setup `python-servers`. They are tried over standard input and output,
// over the shim's HTTP front, and over HTTP against that server and the same of the npm package. A line per client, and an exit code
// of 1 when one is not content.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHttpTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { startShim } from "../../scripts/conformance-server.mjs";
import { startProgram } from "../../scripts/start-program.mjs";
import { unpackPackage } from "../../scripts/unpack-package.mjs";

const [command, shimProgram, python] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "crablet-notes-"));
writeFileSync(join(folder, "note.txt"), "buy milk\n");
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const args = [folder];
const info = { name: "official", version: "1.0.0" };
const capabilities = { elicitation: { form: {} } };
const answer = async () => ({ action: "accept", content: { name: "Ada" } });

/** The clients, each with the ways to the server that it takes. */
const clients = {
  "client 2.4.0, stateless": (way) => current(way, "auto", "2026-07-28"),
  "client 2.4.0, handshake": (way) => current(way, "legacy", "2025-11-25"),
  async "sdk 1.32.2"(way) {
    const client = new OldClient(info, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, answer);
    await client.connect(way.old());
    return client;
  },
};

const stdio = {
  current: () => new StdioClientTransport({ command, args }),
  old: () => new OldTransport({ command, args }),
};

async function current(way, mode, version) {
  const client = new Client(info, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler("elicitation/create", answer);
  await client.connect(way.current());
  assert.equal(client.getNegotiatedProtocolVersion(), version);
  return client;
}

async function check(client, isStateless) {
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name }) => name),
    ["readFile", "listFiles", "searchFiles", "count", "greet"],
  );
  // The old client has a schema for its second parameter.
  const before = client instanceof OldClient ? [undefined] : [];
  const call = (name, given = {}, options = {}) => client.callTool({ name, arguments: given }, ...before, options);
  const read = await call("readFile", { path: "note.txt" });
  assert.equal(read.content[0].text, "buy milk");
  const refused = await call("readFile", { path: "../secret" });
  assert.equal(refused.isError, true);
  assert.match(refused.content[0].text, /leads upwards/);
  const invalid = await call("readFile", {});
  assert.equal(invalid.isError, true, "invalid arguments are for the model to read");
  await assert.rejects(call("nothing"), /there is no tool/);

  const reports = [];
  const onprogress = ({ progress, total }) => reports.push([progress, total]);
  const counted = await call("count", { to: 30 }, { onprogress });
  assert.deepEqual(counted.structuredContent, { counted: 30 });
  // The clients drop reports that they read together with the answer: which ones, the machine decides. None comes twice or late.
  assert.ok(reports.length > 0, "no progress was reported");
  assert.deepEqual(
    reports,
    reports.map((_, index) => [index + 1, 30]),
  );
  assert.equal((await call("greet")).content[0].text, "Hello Ada!");
  const [slow, quick] = await Promise.all([call("count", { to: 10 }), call("readFile", { path: "note.txt" })]);
  assert.deepEqual([slow.structuredContent.counted, quick.content[0].text], [10, "buy milk"]);

  assert.equal((await client.listResources()).resources[0].uri, "notes://about");
  assert.equal((await client.listResourceTemplates()).resourceTemplates[0].uriTemplate, "notes://echo/{word}");
  const { contents } = await client.readResource({ uri: "notes://echo/hi" });
  assert.equal(contents[0].text, "hi");
  await assert.rejects(client.readResource({ uri: "notes://none" }), /no such resource/);
  const { prompts } = await client.listPrompts();
  assert.equal(prompts[0].arguments[0].name, "topic");
  const { messages } = await client.getPrompt({ name: "summary", arguments: { topic: "birds" } });
  assert.match(messages[0].content.text, /about birds/);
  const { completion } = await client.complete({
    ref: { type: "ref/prompt", name: "summary" },
    argument: { name: "topic", value: "g" },
  });
  assert.deepEqual(completion.values, ["gardening", "geology"]);
  if (!isStateless) {
    await client.ping();
    await client.setLoggingLevel("error");
  }
  await assert.rejects(call("count", { to: 1000 }, { signal: AbortSignal.timeout(100) }), /abort|timeout/i);
}

async function checkAll(way, suffix) {
  for (const [name, connect] of Object.entries(clients)) {
    try {
      const client = await connect(way);
      try {
        await check(client, name.endsWith("stateless"));
      } finally {
        await client.close();
      }
      console.log(`ok ${name}${suffix}`);
    } catch (error) {
      console.log(`FAILED ${name}${suffix}\n${error.stack}`);
      process.exitCode = 1;
    }
  }
}

/** The ways of the clients to an address. */
function over(url, options) {
  const made = (Transport) => () => new Transport(new URL(url), options);
  return { current: made(StreamableHTTPClientTransport), old: made(OldHttpTransport) };
}

async function checkPython(url, suffix) {
  const lines = await new Promise((told) =>
    execFile(python, [join(here, "http_client.py"), url], { timeout: 120_000 }, (error, out) =>
      told(error === null ? out.trim().split("\n") : [`FAILED mcp of Python\n${error.message}`]),
    ),
  );
  for (const line of lines) console.log(`${line}${suffix}`);
  if (lines.some((line) => !line.startsWith("ok "))) process.exitCode = 1;
}

await checkAll(stdio, "");

const shim = await startShim(shimProgram, [command, ...args]);
try {
  const options = { requestInit: { headers: { authorization: `Bearer ${shim.grant("--native")}` } } };
  await checkAll(over(shim.url, options), " over the shim's HTTP");
} finally {
  await shim.stop();
}

unpackPackage(here);
for (const [what, program, given] of [
  ["native", command, [folder, "0"]],
  ["package", process.execPath, [join(here, "notes-server.mjs"), folder]],
]) {
  const server = await startProgram(program, given);
  try {
    const suffix = ` over HTTP, ${what}`;
    await checkAll(over(server.url), suffix);
    await checkPython(server.url, suffix);
  } finally {
    await server.stop();
  }
}
