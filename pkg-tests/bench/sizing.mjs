// What a session costs a process, for the sizing in docs/scale.md: prints `{ atWork, history, cpu, writes, bytes }`. Sessions are kept in
// a store of files, and each step of the model calls four tools that are not `repeatable`. Started by run.mjs with --expose-gc.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, openaiCompatible, tool } from "crablet";
import { fileStore } from "crablet/stores";
import { used } from "./lib/used.mjs";

const STEPS = 5;

const [baseUrl, count] = [process.argv[2], Number(process.argv[3])];
const folder = await mkdtemp(join(tmpdir(), "crablet-sizing-"));
const files = fileStore(folder);
const written = { writes: 0, bytes: 0 };
const counted = (name) => (id, version, entries) => {
  written.writes += 1;
  for (const entry of entries) written.bytes += Buffer.byteLength(entry) + 1;
  return files[name](id, version, entries);
};
const store = { ...files, append: counted("append"), replace: counted("replace") };

/** Agents have what is theirs in common, sessions their own. */
function agentOf(steps, work) {
  const input = { type: "object", properties: { i: { type: "number" } }, required: ["i"] };
  return (id) =>
    new Agent({
      model: openaiCompatible("bench", { baseUrl: `${baseUrl}/v1`, apiKey: `bench.agent.${steps}.${id}` }),
      maxIdenticalSteps: 0,
      tools: { noop: tool({ description: "does nothing", input, execute: work }) },
    });
}

/** Sessions that are all in the middle of a run, in a tool. */
async function atWork() {
  let release;
  const released = new Promise((resolve) => {
    release = resolve;
  });
  let waiting = 0;
  let all = () => {};
  const agent = agentOf(1, async () => {
    waiting += 1;
    all();
    await released;
    return "ok";
  });
  const open = async (id) => {
    const session = await agent(id).open(id, store);
    return { session, done: session.send("go").result };
  };
  const begin = async (name, many) => {
    const wanted = waiting + many * 4;
    const begun = await Promise.all(Array.from({ length: many }, (_, index) => open(`${name}-${index}`)));
    await new Promise((resolve) => {
      all = () => waiting >= wanted && resolve();
      all();
    });
    return begun;
  };
  // The first ones load the module and let its memory grow.
  const warm = await begin("warm", 50);
  const before = await used();
  const sessions = await begin("work", count);
  const bytes = ((await used()) - before) / count;
  const history = JSON.stringify(sessions.at(-1).session.toJSON()).length;
  release();
  await Promise.all([...warm, ...sessions].map(({ done }) => done));
  return { atWork: bytes, history };
}

/** What a step costs in user CPU time and in the store. */
async function steps() {
  const agent = agentOf(STEPS, () => "ok");
  const run = async (id) => (await agent(id).open(id, store)).send("go").result;
  for (let index = 0; index < 20; index += 1) await run(`first-${index}`);
  Object.assign(written, { writes: 0, bytes: 0 });
  const before = process.cpuUsage();
  for (let index = 0; index < count; index += 10)
    await Promise.all(Array.from({ length: 10 }, (_, more) => run(`step-${index + more}`)));
  const { user, system } = process.cpuUsage(before);
  const made = Math.ceil(count / 10) * 10 * (STEPS + 1);
  return { cpu: (user + system) / 1_000 / made, writes: written.writes / made, bytes: written.bytes / made };
}

console.log(JSON.stringify({ ...(await atWork()), ...(await steps()) }));
// A run is over before the last files of its store are in place.
await rm(folder, { recursive: true, force: true, maxRetries: 10 });
process.exit();
