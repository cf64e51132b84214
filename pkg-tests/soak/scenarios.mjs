// The scenarios of the soak. Each is one life of something: it checks what it got, counts what it did, and returns what closes
// what it leaves open, if it leaves something.
import { Agent, CrabletError, mcp, openaiCompatible, tool } from "crablet";
import { memoryStore } from "crablet/stores";

/** The bad modes of the demo model, and how a run with each may end: a cut is one before the answer, or within it. */
const BROKEN = {
  "bad-key": ["auth"],
  "error-200": ["server"],
  "error-in-stream": ["server"],
  cut: ["network", "stream-truncated"],
  "cut-clean": ["stream-truncated"],
};

const input = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = {
  get_weather: tool({ description: "Get the weather of a city", input, execute: ({ city }) => `rain in ${city}` }),
};
const WEATHER = 'get the weather in "Oslo"';

/** How far the slow tool counts: about a second, so that there is a middle to drop out of. */
const LONG = 80;
const SHORT = 2;

const stores = memoryStore();

export const SCENARIOS = {
  /** A conversation of some prompts, kept open. */
  async session({ model, count }) {
    const agent = agentOf(model);
    const session = agent.session();
    for (let turn = 0; turn < 3; turn += 1) {
      const { text } = await session.send(WEATHER).result;
      check(text.includes("rain in Oslo"), text);
      count("runs");
      count("tool calls");
    }
    return () => agent.close();
  },

  /** A run that is aborted somewhere. */
  async aborted({ model, random, count }) {
    const run = agentOf(model).session().send("count to 500");
    const deltas = Math.floor(random() * 20);
    let seen = 0;
    for await (const event of run) {
      if (event.type === "text-delta") seen += 1;
      if (seen > deltas) run.abort();
    }
    const error = await run.result.then(
      () => undefined,
      (thrown) => thrown,
    );
    check(isAbort(error), error);
    count("runs");
    count("aborts");
  },

  /** A run that its reader leaves. */
  async left({ model, count }) {
    for await (const event of agentOf(model).stream(WEATHER)) if (event.type === "tool-result") break;
    count("runs");
    count("aborts");
  },

  /** A conversation that goes two ways. */
  async forked({ model, count }) {
    const agent = agentOf(model);
    const session = agent.session();
    await session.send(WEATHER).result;
    const other = agent.session(session.fork());
    const answers = await Promise.all([session.send("count to 3").result, other.send(WEATHER).result]);
    check(answers[0].text.includes("3") && answers[1].text.includes("rain in Oslo"), answers);
    check(session.tree().length > 0, "the tree is empty");
    count("runs", 3);
    count("forks");
  },

  /** A conversation that is saved in the middle of a run and goes on elsewhere. */
  async saved({ model, count }) {
    const first = agentOf(model).session();
    let saved;
    for await (const event of first.send(WEATHER)) {
      if (event.type !== "tool-result") continue;
      saved = JSON.stringify(first);
      break;
    }
    const session = agentOf(model).session(JSON.parse(saved));
    const { text } = await session.resume().result;
    check(text.includes("rain in Oslo"), text);
    count("runs", 2);
    count("saves and restores");
  },

  /** A conversation in a store, taken up by another agent, and deleted. */
  async stored({ model, count, random }) {
    const id = `soak-${Math.floor(random() * 2 ** 50)}`;
    for (let life = 0; life < 2; life += 1) {
      const session = await agentOf(model).open(id, stores);
      const { text } = await session.send(WEATHER).result;
      check(text.includes("rain in Oslo"), text);
      check(session.getState().messages.length >= 4 * (life + 1), session.getState().messages.length);
      count("runs");
    }
    await stores.delete(id);
    count("saves and restores");
  },

  /** Models that fail. */
  async broken({ model, count }) {
    for (const [name, kinds] of Object.entries(BROKEN)) {
      const error = await agentOf(model, { name, retry: false })
        .run("hello")
        .then(
          () => undefined,
          (thrown) => thrown,
        );
      check(kinds.includes(error?.kind), error ?? `${name} did not fail`);
      count("runs");
      count("expected errors");
    }
  },

  /** An agent whose tool is behind the shim, kept open. */
  async shimAgent({ model, shim, count }) {
    const agent = new Agent({
      model: openaiCompatible("scripted-demo", { baseUrl: model }),
      mcpServers: { notes: mcp.shim(shim) },
    });
    try {
      const session = agent.session();
      const { text } = await session.send("Read note.txt").result;
      check(text.includes("the word is soak"), text);
      count("runs");
      count("tool calls");
      return () => agent.close();
    } catch (error) {
      await agent.close();
      throw error;
    }
  },

  /** A client that calls, gives a call up, and says goodbye. */
  async shimCalls({ shim, count, random }) {
    const client = await mcp.connect(mcp.shim(shim));
    try {
      check(
        (await client.tools()).some(({ name }) => name === "count"),
        "no count",
      );
      await Promise.all(Array.from({ length: 4 }, () => counts(client, SHORT, count)));
      await givenUp(client, random, count);
    } finally {
      await client.close();
    }
  },

  /** A client whose socket breaks in the middle of a call, some times. */
  async shimDropped({ shim, count, random }) {
    const line = lineOf();
    const client = await mcp.connect(mcp.shim({ ...shim, WebSocket: line.WebSocket }));
    try {
      for (let time = 0; time < 3; time += 1) {
        const called = counts(client, LONG, count);
        await wait(random() * 500);
        line.drop();
        await called;
        count("reconnects");
      }
      check(line.opened() > 1, "the socket was never opened again");
    } finally {
      await client.close();
    }
  },

  /** A page that is gone in the middle of a call, and the page after it that comes back to the process. */
  async shimReturned({ shim, count, random }) {
    const line = lineOf();
    let resume;
    const onEvent = (event) => {
      if (event.type === "connected") resume = event.resume;
    };
    const first = await mcp.connect(mcp.shim({ ...shim, WebSocket: line.WebSocket, onEvent }));
    const called = first.callTool("count", { to: LONG }).catch(() => {});
    await wait(random() * 300);
    line.cut();
    const second = await mcp.connect(mcp.shim({ ...shim, resume, onEvent }));
    try {
      await counts(second, SHORT, count);
      count("resumed");
    } finally {
      await second.close();
      await first.close();
      await called;
    }
  },

  /** A page that is gone for good, without a goodbye. */
  async shimGone({ shim, count, random }) {
    const line = lineOf();
    const client = await mcp.connect(mcp.shim({ ...shim, WebSocket: line.WebSocket }));
    const called = client.callTool("count", { to: LONG }).catch(() => {});
    await wait(random() * 300);
    line.cut();
    await client.close();
    await called;
    count("vanished");
  },

  /** A client of the HTTP front. */
  async http({ front, count, random }) {
    const era = random() < 0.5 ? "stateless" : "handshake";
    const client = await mcp.connect(mcp.http(front.url, { era, headers: { authorization: `Bearer ${front.token}` } }));
    try {
      check(
        (await client.tools()).some(({ name }) => name === "count"),
        "no count",
      );
      await Promise.all(Array.from({ length: 3 }, () => counts(client, SHORT, count)));
      await givenUp(client, random, count);
    } finally {
      await client.close();
    }
    count(`${era} clients over HTTP`);
  },
};

function agentOf(baseUrl, { name = "scripted-demo", ...options } = {}) {
  return new Agent({ model: openaiCompatible(name, { baseUrl }), tools, ...options });
}

/** A call of the slow tool, to its end. */
async function counts(client, to, count) {
  const result = await client.callTool("count", { to });
  check(result.structuredContent?.counted === to, result);
  count("tool calls");
}

/** A call that its caller has no more use for. */
async function givenUp(client, random, count) {
  const controller = new AbortController();
  const called = client.callTool("count", { to: LONG }, { signal: controller.signal }).then(
    () => undefined,
    (error) => error,
  );
  await wait(random() * 100);
  controller.abort();
  const error = await called;
  check(isAbort(error), error);
  count("aborts");
}

/** A line to the shim that can break: `drop` ends its sockets, after `cut` there are none any more. */
function lineOf() {
  const open = new Set();
  let opened = 0;
  let isCut = false;
  class Breakable extends WebSocket {
    constructor(...args) {
      if (isCut) throw new Error("the line is cut");
      super(...args);
      opened += 1;
      open.add(this);
      this.addEventListener("close", () => open.delete(this));
    }
  }
  const drop = () => {
    for (const socket of open) socket.close();
  };
  return {
    WebSocket: Breakable,
    opened: () => opened,
    drop,
    cut() {
      isCut = true;
      drop();
    },
  };
}

function isAbort(error) {
  return error?.name === "AbortError" || (CrabletError.is(error) && error.kind === "aborted");
}

function check(holds, seen) {
  if (holds) return;
  if (seen instanceof Error) throw seen;
  throw new Error(`unexpected: ${typeof seen === "string" ? seen : JSON.stringify(seen)}`.slice(0, 500));
}

function wait(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
