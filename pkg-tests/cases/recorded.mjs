// Runs recorded traffic through the package: `node recorded.mjs FOLDER`. A real HTTP server writes each recorded answer, whole
// and cut at random places; an agent of the package reads it.
//
// A line for each file that failed and at the end `N passed, N failed`.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { agentOf, isWire } from "./agents.mjs";
import { random } from "./bytes.mjs";
import { differences } from "./compare.mjs";
import { observe } from "./observe.mjs";
import { startReplayServer } from "./replay-server.mjs";

/** The random cuttings of each answer, beside the whole. */
const CUTTINGS = 10;

/** Wires for an answer of a wire that the package does not speak: none of them may take it badly. */
const ALL_WIRES = ["anthropic", "openai-chat", "openai-responses", "gemini", "bedrock"];

const folder = process.argv[2];
const server = await startReplayServer();
const count = { passed: 0, failed: 0 };

for (const wire of (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isDirectory())) {
  const files = (await readdir(join(folder, wire.name))).filter((name) => name.endsWith(".json")).sort();
  for (const file of files) {
    const found = await runFile(join(folder, wire.name, file), wire.name).catch((error) => [error.stack ?? `${error}`]);
    if (found.length === 0) {
      count.passed += 1;
      continue;
    }
    count.failed += 1;
    console.log(`FAILED ${wire.name}/${file.slice(0, -".json".length)}`);
    for (const line of found) console.log(`    ${line}`);
  }
}
await server.close();
if (count.passed + count.failed === 0) {
  console.log(`FAILED ${folder}: there is no recording in it`);
  count.failed += 1;
}
console.log(`${count.passed} passed, ${count.failed} failed`);
process.exitCode = count.failed === 0 ? 0 : 1;

async function runFile(path, folderName) {
  const { wire = folderName, provider, response, expected } = JSON.parse(await readFile(path, "utf8"));
  const { status, headers, body, body_b64: base64 } = response;
  if (typeof body !== "string" && typeof base64 !== "string") return ["has no body"];
  const bytes = typeof body === "string" ? Buffer.from(body) : Buffer.from(base64, "base64");
  if (!isWire(wire) && expected !== null) return [`its wire "${wire}" is not spoken`];
  for (let seed = 0; seed <= CUTTINGS; seed += 1) {
    const chunks = seed === 0 ? [bytes] : random(bytes, seed);
    for (const spoken of isWire(wire) ? [wire] : ALL_WIRES) {
      server.answerWith([{ status, headers: ofAnyBody(headers), chunks }]);
      const executed = [];
      const agent = agentOf(spoken, server.url, { calls: expected?.toolCalls, executed, provider, maxSteps: 1 });
      const observed = await observe(agent.stream("q"));
      await agent.close();
      const found = expected === null ? unsound(observed, executed) : differences(expected, { ...observed, executed });
      if (found.length > 0) return [...found, seed === 0 ? "read whole" : `cut with seed ${seed}`];
    }
  }
  return [];
}

/** What holds for an answer that nobody knows the meaning of. */
function unsound({ error }, executed) {
  const found = executed.map((id) => `a call ran: ${id}`);
  if (error?.kind === "internal") found.push(`it broke the module: ${error.message}`);
  return found;
}

/** Without the headers that were true of the bytes on the recorded connection only. */
function ofAnyBody(headers) {
  const ofConnection = ["content-length", "content-encoding", "transfer-encoding", "connection"];
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !ofConnection.includes(name.toLowerCase())));
}
