// Plays a script through the public API of the package, from its first prompt to one without faults, as `native.rs` does with
// the crate.
import { join } from "node:path";
import { rm } from "node:fs/promises";
import { Agent, anthropic, bedrock, CrabletError, gemini, mcp, openai, openaiCompatible, tool } from "crablet";
import { inHurry, wait } from "./clock.mjs";
import { FaultyStore } from "./faulty-store.mjs";
import { ask } from "./harness.mjs";

/** How often a script is prompted while things go wrong, before it goes on without faults. */
const FAULTY_RUNS = 3;

/** How often a conversation is opened from a store that fails, at most. */
const LIVES = 14;

/** How often a client asks for the tools of a server that does not answer, at most. */
const LISTINGS = 12;

/** Short limits and no waits: what else takes minutes takes milliseconds. */
const HURRIED = {
  firstByteTimeoutMs: inHurry(400),
  idleTimeoutMs: inHurry(400),
  retry: { maxAttempts: 3, baseDelayMs: 1 },
};

/** What each script has shown last, for scripts that hang. */
export const shown = new Map();

/** Gives the record of a script: its runs, what its tools did, and what must not be. */
export async function play(script) {
  const record = { runs: [], performed: [], problems: [] };
  try {
    await PLAYS[script.boundary](script, record);
  } catch (error) {
    record.problems.push(`crablet threw what nobody expects: ${error?.stack ?? error}`);
  }
  shown.delete(script.seed);
  return record;
}

const PLAYS = {
  async model(script, record) {
    const tools = { book: bookOf(script, record) };
    const agent = new Agent({ model: modelOf(script), tools, ...HURRIED });
    const calm = new Agent({ model: modelOf(script), tools });
    await converse(script, record, agent, calm);
    await agent.close();
    await calm.close();
  },

  async "mcp-http"(script, record) {
    const { url, token, era } = script.http;
    await converseWithServer(script, record, mcp.http(url, { era, headers: { authorization: `Bearer ${token}` } }));
  },

  async shim(script, record) {
    const { token, way } = script.shim;
    // The address of a shim has no path; the way to the proxy has one.
    class WebSocketThroughProxy extends WebSocket {
      constructor(_url, protocols) {
        super(way, protocols);
      }
    }
    await converseWithServer(
      script,
      record,
      mcp.shim({ server: script.server, token, WebSocket: WebSocketThroughProxy }),
    );
  },

  async store(script, record) {
    const agent = new Agent({ model: modelOf(script), tools: { book: bookOf(script, record) } });
    await converseFromStore(script, record, agent);
    await agent.close();
  },
};

/** Prompts, each restored from what was saved after the one before, the last without faults. */
async function converse(script, record, agent, calm) {
  let session = agent.session();
  for (let number = 0; number < FAULTY_RUNS; number += 1) {
    record.runs.push(await converseOnce(script, session, `prompt ${number}`));
    session = agent.session(saved(session));
  }
  await ask("calm", { seed: script.seed });
  session = calm.session(saved(session));
  record.runs.push(await converseOnce(script, session, "the last prompt"));
}

/** A run does not begin before its agent has the tools of its servers: the next try may find them. */
async function converseOnce(script, session, prompt) {
  let run;
  for (let listing = 0; listing < LISTINGS; listing += 1) {
    run = await read(script, session, session.send(prompt));
    if (run.events.length > 0) break;
  }
  return run;
}

async function converseWithServer(script, record, server) {
  const agent = new Agent({ model: modelOf(script), mcpServers: { [script.server]: server } });
  for (let listing = 0; listing < LISTINGS; listing += 1) {
    try {
      const [ledger] = await agent.connect();
      if (ledger.tools.some(({ toolName }) => toolName === script.tool)) break;
    } catch (error) {
      if (!CrabletError.is(error)) throw error;
    }
    // A damaged list, or none: the next one may be whole.
    await wait(5);
  }
  await converse(script, record, agent, agent);
  await agent.close();
}

/** Opens the conversation from a store that fails, again and again, the last time from one that does not. */
async function converseFromStore(script, record, agent) {
  const store = new FaultyStore(script.store, script.seed);
  const id = String(script.seed);
  const left = [];
  let prompts = 0;
  for (let life = 0; life < LIVES && prompts < FAULTY_RUNS; life += 1) {
    const opening = agent.open(id, store);
    opening.catch(() => {});
    const session = await Promise.race([opening.catch(() => undefined), store.stalled()]);
    if (session === undefined) continue;
    if (store.isDamaged) {
      mustBeRestorable(agent, session, record);
      continue;
    }
    // What was open, even if only its end; then another prompt.
    const isPatient = life % 2 === 0;
    const resumed = session.resume();
    if (resumed !== undefined) {
      const run = await readOrStall(script, session, resumed, store, isPatient, left);
      if (run === undefined) continue;
      record.runs.push({ ...run, isResumed: true });
      // What does not answer would keep the next run waiting too.
      if (store.hasStalled) continue;
    }
    const run = await readOrStall(script, session, session.send(`prompt of life ${life}`), store, isPatient, left);
    if (run === undefined) continue;
    record.runs.push(run);
    if (run.events.at(-1)?.stopReason === "stop") prompts += 1;
  }
  await ask("calm", { seed: script.seed });
  try {
    const session = await agent.open(id, store);
    const resumed = session.resume();
    if (resumed !== undefined)
      record.runs.push({ ...(await read(script, session, resumed)), isResumed: true, isReopened: true });
    record.runs.push({ ...(await read(script, session, session.send("the last prompt"))), isReopened: true });
  } catch (error) {
    record.problems.push(`the store is well, and the session cannot be opened: ${error?.stack ?? error}`);
  }
  store.end();
  await Promise.all(left);
  await rm(join(script.store, id), { recursive: true, force: true });
}

/** Reads a run to its end. */
async function read(script, session, run) {
  const events = [];
  await readInto(script, run, events);
  return { isResumed: false, isReopened: false, events, snapshot: session.toJSON().snapshot };
}

/**
 * Reads a run to its end. When the store does not answer, somebody stops the run, which then ends all the same, or leaves it,
 * and nothing is known of its end.
 */
async function readOrStall(script, session, run, store, isPatient, left) {
  const events = [];
  const reading = readInto(script, run, events);
  for (;;) {
    const isOver = await Promise.race([reading.then(() => true), store.stalled().then(() => false)]);
    if (isOver) break;
    store.notice();
    run.abort(new Error("the disk does not answer"));
    if (isPatient) continue;
    left.push(reading);
    return undefined;
  }
  return { isResumed: false, isReopened: true, events, snapshot: session.toJSON().snapshot };
}

async function readInto(script, run, events) {
  shown.set(script.seed, events);
  try {
    for await (const event of run) events.push(event);
  } catch (error) {
    // What made it fail stands in its last event too.
    if (!CrabletError.is(error)) throw error;
  }
}

/** What was made of a damaged session is refused with an error, or can be taken up again. */
function mustBeRestorable(agent, session, record) {
  try {
    agent.session(saved(session));
  } catch (error) {
    record.problems.push(`what was made of a damaged session cannot be restored: ${error?.stack ?? error}`);
  }
}

/** The session as a text says it: all that another process would have of it. */
const saved = (session) => JSON.parse(JSON.stringify(session));

function modelOf({ wire, model: baseUrl }) {
  const id = "faulty";
  switch (wire) {
    case "chat":
      return openaiCompatible(id, { baseUrl });
    case "anthropic":
      return anthropic(id, { baseUrl });
    case "responses":
      return openai(id, { baseUrl, api: "responses" });
    case "gemini":
      return gemini(id, { baseUrl });
    case "bedrock":
      return bedrock(id, { baseUrl, region: "us-east-1" });
    default:
      throw new Error(`no model speaks ${wire}`);
  }
}

function bookOf({ seed, schema }, record) {
  return tool({
    description: "Books something once",
    input: schema,
    async execute(input) {
      record.performed.push(input);
      await wait((seed + String(input.key).length) % 4);
      return `booked ${input.key}`;
    },
  });
}
