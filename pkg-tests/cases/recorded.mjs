// Runs recorded traffic through the package: `node recorded.mjs FOLDER`. A real HTTP server writes each recorded answer, whole
// and cut at random places; an agent of the package reads it. Then the connection drops behind some of its events.
//
// A line for each file that failed and at the end `N passed, N failed`.
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { agentOf, isWire } from "./agents.mjs";
import { random } from "./bytes.mjs";
import { differences } from "./compare.mjs";
import { observe } from "./observe.mjs";
import { startReplayServer } from "./replay-server.mjs";

/** The random cuttings of each answer, beside the whole. */
const CUTTINGS = 10;

/** The most events of an answer behind which the connection drops. */
const DROPS = 8;

/** Wires for an answer of a wire that the package does not speak: none of them may take it badly. */
const ALL_WIRES = ["anthropic", "openai-chat", "openai-responses", "gemini", "bedrock"];

const folder = process.argv[2];
const server = await startReplayServer();
const count = { passed: 0, failed: 0 };

for (const wire of (await readdir(folder)).sort()) {
  if (!(await stat(join(folder, wire))).isDirectory()) continue;
  const files = (await readdir(join(folder, wire))).filter((name) => name.endsWith(".json")).sort();
  for (const file of files) {
    const found = await runFile(join(folder, wire, file), wire).catch((error) => [error.stack ?? `${error}`]);
    if (found.length === 0) {
      count.passed += 1;
      continue;
    }
    count.failed += 1;
    console.log(`FAILED ${wire}/${file.slice(0, -".json".length)}`);
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
  const read = async (spoken, answer) => {
    server.answerWith([{ status, headers: ofAnyBody(headers), ...answer }]);
    const executed = [];
    const agent = agentOf(spoken, server.url, { calls: expected?.toolCalls, executed, provider, maxSteps: 1 });
    const observed = await observe(agent.stream("q"));
    await agent.close();
    return { ...observed, executed };
  };
  for (let seed = 0; seed <= CUTTINGS; seed += 1) {
    const chunks = seed === 0 ? [bytes] : random(bytes, seed);
    for (const spoken of isWire(wire) ? [wire] : ALL_WIRES) {
      const observed = await read(spoken, { chunks });
      const found = expected === null ? unsound(observed) : differences(expected, observed);
      if (found.length > 0) return [...found, seed === 0 ? "read whole" : `cut with seed ${seed}`];
    }
  }
  if (expected === null || status !== 200) return [];
  const whole = await read(wire, { chunks: [bytes] });
  for (const end of someOf(boundaries(bytes), DROPS)) {
    const found = unsoundWhenDropped(await read(wire, { chunks: [bytes.subarray(0, end)], isDropped: true }), whole);
    if (found.length > 0) return [...found, `dropped behind ${end} bytes`];
  }
  return [];
}

/** Where an event of a stream ends: at an empty line, or at a frame, which begins with its length; none for a document. */
function boundaries(bytes) {
  const ends = [];
  if (bytes[0] === 0) {
    for (let at = 0; at + 4 <= bytes.length; ) {
      at += bytes.readUInt32BE(at);
      ends.push(at);
    }
  } else if (!/^\s*[{[]/.test(bytes.subarray(0, 64).toString())) {
    for (const { index, 0: end } of bytes.toString("latin1").matchAll(/\r?\n\r?\n/g)) ends.push(index + end.length);
  }
  return ends;
}

/** At most that many of a list, from all over it, its last ones among them. */
function someOf(list, most) {
  const step = Math.max(1, Math.ceil(list.length / most));
  return list.filter((_, index) => (list.length - 1 - index) % step === 0 || index >= list.length - 3);
}

/** A success that the whole answer is not, or a call that ran and was not whole. */
function unsoundWhenDropped({ stopReason, toolCalls, executed }, whole) {
  const found = [];
  if (stopReason !== "error" && stopReason !== whole.stopReason) found.push(`stop reason ${stopReason}`);
  const isKnown = ({ name, arguments: input }) =>
    whole.toolCalls.some((call) => call.name === name && isDeepStrictEqual(call.arguments, input));
  const cut = toolCalls.filter((call) => executed.includes(call.id) && !isKnown(call));
  return [...found, ...cut.map((call) => `a call that was cut ran: ${JSON.stringify(call)}`)];
}

/** What holds for an answer that nobody knows the meaning of. */
function unsound({ error, executed }) {
  const found = executed.map((id) => `a call ran: ${id}`);
  if (error?.kind === "internal") found.push(`it broke the module: ${error.message}`);
  return found;
}

/** Without the headers that were true of the bytes on the recorded connection only. */
function ofAnyBody(headers) {
  const ofConnection = ["content-length", "content-encoding", "transfer-encoding", "connection"];
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !ofConnection.includes(name.toLowerCase())));
}
