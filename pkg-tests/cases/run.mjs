// Runs the cases through the package: `node run.mjs FOLDER`. A real HTTP server writes exactly the chunks of a case, then the
// same bytes cut in other places; an agent of the package reads them.
//
// A line per case and at the end `N passed, N failed`. Cases that are described in words and not in data, and cases of areas
// that have other tests, are counted apart.
import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { readServerSentEvents } from "crablet";
import { agentOf, isWire } from "./agents.mjs";
import { chunksOf, cuttings, random } from "./bytes.mjs";
import { differences, sseDifferences, unmet } from "./compare.mjs";
import { runMcp } from "./mcp.mjs";
import { observe } from "./observe.mjs";
import { startReplayServer } from "./replay-server.mjs";

/** The cuttings of the answers of an exchange, beside the one that it has. */
const EXCHANGE_CUTTINGS = 200;

/** Verdicts on cases that this runner only counts. */
const IN_WORDS = ["in words"];
const OTHER_AREA = ["another area"];

const folder = process.argv[2];
const server = await startReplayServer();
const count = { passed: 0, failed: 0, inWords: 0 };
const otherAreas = new Map();

const files = (await readdir(folder)).filter((name) => name.endsWith(".json")).sort();
for (const file of files) {
  const name = file.slice(0, -".json".length);
  try {
    const found = await runFile(join(folder, file));
    if (found.length === 0) {
      count.passed += 1;
      console.log(`ok ${name}`);
    } else if (found !== IN_WORDS && found !== OTHER_AREA) fail(name, found);
  } catch (error) {
    fail(name, [error.stack ?? String(error)]);
  }
}
await server.close();
for (const [area, number] of otherAreas) console.log(`of an area with other tests: ${area} (${number})`);
if (count.inWords > 0) console.log(`not data-driven: ${count.inWords}`);
if (count.passed + count.failed === 0) fail(folder, ["no case was run"]);
console.log(`${count.passed} passed, ${count.failed} failed`);
process.exitCode = count.failed === 0 ? 0 : 1;

function fail(name, found) {
  count.failed += 1;
  console.log(`FAILED ${name}`);
  for (const line of found) console.log(`    ${line}`);
}

function inWords(path) {
  count.inWords += 1;
  console.log(`not data-driven ${basename(path)}`);
  return IN_WORDS;
}

async function runFile(path) {
  const { area, input, expected } = JSON.parse(await readFile(path, "utf8"));
  if (typeof area !== "string") return ["has no area"];
  if (area === "mcp-http") return (await runMcp({ input, expected })) ?? inWords(path);
  if (area !== "sse" && !isWire(area)) {
    otherAreas.set(area, (otherAreas.get(area) ?? 0) + 1);
    return OTHER_AREA;
  }
  if (isComparable(expected) && input?.exchange !== undefined) return runExchanges(area, input.exchange, expected);
  const variants = input?.variants ?? ((input?.chunks ?? input?.chunks_gen) === undefined ? undefined : [input]);
  if (variants === undefined || !isComparable(expected)) return inWords(path);
  for (const [number, variant] of variants.entries()) {
    const chunks = chunksOf(variant);
    const head = { status: variant.status ?? input.status ?? 200, headers: variant.headers ?? input.headers ?? {} };
    for (const cutting of [chunks, ...cuttings(Buffer.concat(chunks))]) {
      server.answerWith([{ ...head, chunks: cutting }]);
      const found = area === "sse" ? await runSse(cutting, expected) : await runStream(area, expected);
      if (found.length > 0) {
        const lengths = cutting.slice(0, 8).map(({ length }) => length);
        return [...found, `variant ${number}, cut into pieces of ${lengths.join(", ")}…`];
      }
    }
  }
  return [];
}

async function runSse(chunks, expected) {
  const events = [];
  for await (const event of readServerSentEvents(await fetch(server.url))) events.push(event);
  return sseDifferences(expected, events, { isFine: chunks.every(({ length }) => length <= 1) });
}

async function runStream(area, expected) {
  const executed = [];
  const agent = agentOf(area, server.url, { calls: expected.toolCalls, executed, maxSteps: 1 });
  const observed = await observe(agent.stream("q"));
  await agent.close();
  return differences(expected, { ...observed, executed });
}

/** Whether what is expected can be compared. Facts are for people. */
function isComparable(expected) {
  const members = ["text", "thinking", "toolCalls", "stopReason", "usage", "error", "events", "lastEventId"];
  return members.some((name) => expected[name] !== undefined) || expected.facts === undefined;
}

/** An exchange with its answers as they are written, then cut into single bytes, then at random. */
async function runExchanges(area, steps, expected) {
  for (let seed = 0; seed <= EXCHANGE_CUTTINGS; seed += 1) {
    const found = await runExchange(area, steps, expected, (chunks) => {
      if (seed === 0) return chunks;
      const bytes = Buffer.concat(chunks);
      return seed === 1 ? Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)) : random(bytes, seed);
    });
    if (found.length > 0) return [...found, `cutting ${seed}`];
  }
  return [];
}

/** Several requests that make one answer. A last step without an answer is only about what is asked. */
async function runExchange(area, steps, expected, cut) {
  const answers = steps.flatMap(({ respond }) => (respond === undefined ? [] : [respond]));
  server.answerWith(answers.map((answer) => ({ status: 200, headers: {}, ...answer, chunks: cut(chunksOf(answer)) })));
  const executed = [];
  const agent = agentOf(area, server.url, { calls: expected.toolCalls, executed });
  const observed = await observe(agent.stream("q"));
  await agent.close();
  const found = differences(expected, { ...observed, executed });
  if (server.requests.length !== steps.length) found.push(`${server.requests.length} requests, not ${steps.length}`);
  for (const [number, { expect_request: wanted = {} }] of steps.entries()) {
    found.push(...unmet(wanted, server.requests[number] ?? {}).map((lack) => `request ${number + 1}: ${lack}`));
  }
  return found;
}
