// The cases of the area mcp-http through the package: a real HTTP server answers as the case scripts it.
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { Agent, mcp } from "crablet";
import { scriptedModel } from "crablet/test";
import { random } from "./bytes.mjs";
import { startScriptedServer } from "./mcp-script.mjs";

/** How often each answer is cut at random places, beside as it is written and in single bytes. */
const RANDOM_CUTTINGS = 3;

/** What a name may be for every provider. */
const ACCEPTED = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

/** What differs, in words; `undefined` for a case that is told in words only. */
export function runMcp({ input, expected }) {
  const variants = input.variants ?? [];
  if (Array.isArray(input.server) || variants.some(({ server }) => Array.isArray(server))) {
    return runScripts(input, variants, expected);
  }
  if (variants[0]?.respond !== undefined && Array.isArray(expected.then)) return detectEras(variants, expected.then);
  if (Array.isArray(input.servers?.[0]?.tools)) return mapNames(input.servers);
  if (Array.isArray(input.results)) return showResults(input.results);
  return undefined;
}

async function runScripts(input, variants, expected) {
  const scripts = [input, ...variants].filter(({ server }) => Array.isArray(server));
  for (const [number, { server, ops = input.ops }] of scripts.entries()) {
    const own = expected.variants?.[number] ?? expected;
    for (const [name, cut] of cuts()) {
      const found = await runScript(server, ops, own, cut);
      if (found.length > 0) return [...found, `variant ${number}, ${name}`];
    }
  }
  return [];
}

/** Ways to cut the chunks of an answer. */
function cuts() {
  const ways = [
    ["as written", (chunks) => chunks],
    ["in single bytes", (chunks) => Array.from(Buffer.concat(chunks), (byte) => Buffer.of(byte))],
  ];
  for (let seed = 1; seed <= RANDOM_CUTTINGS; seed += 1) {
    ways.push([`cut at random ${seed}`, (chunks) => random(Buffer.concat(chunks), seed)]);
  }
  return ways;
}

async function runScript(steps, ops, expected, cut) {
  if (!Array.isArray(ops)) return ["the case has no list of ops"];
  const server = await startScriptedServer(steps, cut);
  const results = [];
  let client;
  try {
    for (const op of ops) {
      const started = performance.now();
      const outcome = await outcomeOf(async () => {
        if (op === "connect") {
          client = await mcp.connect(mcp.http(server.url, { era: eraOf(steps) }));
          return "ok";
        }
        return perform(client, op);
      });
      results.push({ ...outcome, took: performance.now() - started });
    }
  } finally {
    await client?.close().catch(() => {});
    await server.close();
  }
  return [...server.problems, ...headerProblems(steps, server.requests), ...differences(expected, results, server)];
}

/** The era that a script is about: that of its first message. */
function eraOf(steps) {
  const has = (method) => steps.some(({ rpc }) => rpc === method);
  if (has("initialize") === has("server/discover")) return "auto";
  return has("initialize") ? "handshake" : "stateless";
}

async function outcomeOf(work) {
  try {
    return { given: await work() };
  } catch (error) {
    if (error.kind === undefined) throw error;
    return { error };
  }
}

async function perform(client, op) {
  const options = op.timeout_ms === undefined ? {} : { timeoutMs: op.timeout_ms };
  if (op.callTool !== undefined) {
    const { content } = await client.callTool(op.callTool.name, op.callTool.arguments, options);
    return { text: content.map(({ text }) => text ?? "").join("\n") };
  }
  if (op.readResource !== undefined) {
    const contents = await client.readResource(op.readResource.uri, options);
    return { text: contents.map(({ text }) => text ?? "").join("\n") };
  }
  if (op.getPrompt !== undefined) {
    const { messages } = await client.prompt(op.getPrompt.name, op.getPrompt.arguments);
    return { text: messages.map(({ content }) => content.text ?? "").join("\n") };
  }
  const names = (entries) => entries.map(({ name }) => name);
  switch (op) {
    case "listTools":
    case "listAllTools":
      return { tools: names(await client.tools()) };
    case "listResources":
      return { resources: (await client.resources()).map(({ uri }) => uri) };
    case "listPrompts":
      return { prompts: names(await client.prompts()) };
    case "ping":
      await client.request("ping");
      return "ok";
    case "close":
      await client.close();
      return "ok";
  }
  throw new Error(`this runner does not know the op ${JSON.stringify(op)}`);
}

function differences(expected, results, { requests }) {
  const known = ["op_results", "op_results_any", "tools", "max_requests", "facts", "variants"];
  const found = Object.keys(expected)
    .filter((name) => !known.includes(name))
    .map((name) => `this runner cannot check expected.${name}`);
  const compare = (wanted) =>
    wanted.length === results.length
      ? wanted.flatMap((one, index) => resultProblems(one, results[index]))
      : [`${results.length} results, ${wanted.length} expected`];
  if (expected.op_results !== undefined) found.push(...compare(expected.op_results));
  const choices = expected.op_results_any?.map(compare) ?? [];
  if (choices.length > 0 && choices.every(({ length }) => length > 0)) found.push(...choices.flat());
  if (expected.tools !== undefined) found.push(...resultProblems({ tools: expected.tools }, results.at(-1)));
  const lists = requests.filter(({ rpc }) => rpc === "tools/list").length;
  if (lists > (expected.max_requests ?? Number.POSITIVE_INFINITY)) found.push(`${lists} lists were asked for`);
  return found;
}

function resultProblems(wanted, { given, error, took }) {
  let isMet;
  if (wanted.error === undefined) isMet = error === undefined && isDeepStrictEqual(given, wanted);
  else {
    const kinds = wanted.error.split("|").map((kind) => kind.trim());
    const texts = wanted.message_contains?.split(" | ") ?? [""];
    isMet =
      error !== undefined &&
      kinds.includes(error.kind.replaceAll("-", "_")) &&
      texts.some((text) => error.message.includes(text)) &&
      took <= (wanted.within_ms ?? Number.POSITIVE_INFINITY);
  }
  if (isMet) return [];
  const seen = error === undefined ? JSON.stringify(given) : `${error.kind}: ${error.message}`;
  return [`expected ${JSON.stringify(wanted)}, got ${seen} after ${Math.round(took)} ms`];
}

/** `initialize` is sent outside of a session, everything later inside the newest one and with the agreed version. */
function headerProblems(steps, requests) {
  const openings = steps.filter(({ rpc, respond }) => rpc === "initialize" && respond.status === 200);
  let refused = steps.filter(({ rpc, respond }) => rpc === "initialize" && respond.status !== 200).length;
  let current;
  const found = [];
  for (const { http, rpc, body, headers } of requests) {
    if (Array.isArray(body)) found.push("the client sent a batch");
    const [session, version] = [headers["mcp-session-id"], headers["mcp-protocol-version"]];
    if (rpc === "initialize") {
      if (session !== undefined || version !== undefined) found.push("initialize carried a session or a version");
      if (refused > 0) refused -= 1;
      else current = openings.shift() ?? current;
      continue;
    }
    if (current === undefined) continue;
    const { headers: given = {}, json } = current.respond;
    const wanted = Object.entries(given).find(([name]) => name.toLowerCase() === "mcp-session-id")?.[1];
    if (session !== wanted) found.push(`${http} ${rpc} was not sent in the session`);
    const agreed = json?.result?.protocolVersion;
    if (agreed >= "2025-06-18" && version !== agreed) found.push(`${http} ${rpc} did not name the version`);
  }
  return found;
}

/** Each variant is the answer to a probe; `then` says in words which era it means. */
async function detectEras(variants, words) {
  for (const [number, { respond }] of variants.entries()) {
    const answered = (result) => ({
      status: 200,
      headers: { "content-type": "application/json" },
      json: { jsonrpc: "2.0", id: "$ID", result },
    });
    const server = await startScriptedServer(
      [
        { http: "POST", rpc: "server/discover", nth: 1, respond },
        {
          http: "POST",
          rpc: "server/discover",
          respond: answered({ supportedVersions: ["2026-07-28"], capabilities: {} }),
        },
        { http: "POST", rpc: "initialize", respond: answered({ protocolVersion: "2025-11-25", capabilities: {} }) },
      ],
      (chunks) => chunks,
    );
    try {
      await (await mcp.connect(mcp.http(server.url))).close();
    } finally {
      await server.close();
    }
    const isLegacy = server.requests.some(({ rpc }) => rpc === "initialize");
    if (isLegacy !== words[number].startsWith("legacy"))
      return [`variant ${number} is ${words[number]}, and was not taken so`];
  }
  return [];
}

/** Names are accepted by every provider, distinct, and the same each time. */
async function mapNames(servers) {
  const named = async () => {
    let names;
    const mcpServers = Object.fromEntries(
      servers.map(({ name, tools }) => [name, mcp.custom({ request: listing(tools) })]),
    );
    const model = scriptedModel([
      ({ tools }) => {
        names = tools.map(({ name }) => name);
        return "ok";
      },
    ]);
    const agent = new Agent({ model, mcpServers });
    await agent.run("q");
    await agent.close();
    return names;
  };
  const names = await named();
  const count = servers.flatMap(({ tools }) => tools).length;
  const found = names.filter((name) => !ACCEPTED.test(name)).map((name) => `${name} is refused by providers`);
  if (new Set(names).size !== count) found.push(`${count} tools have the names ${names}`);
  if (!isDeepStrictEqual(await named(), names)) found.push("the names are others the second time");
  return found;
}

/** Every result gives the model something to read, and says whether the tool failed. */
async function showResults(results) {
  const found = [];
  for (const result of results) {
    let seen;
    const model = scriptedModel([
      ({ tools }) => [{ type: "tool-call", toolName: tools[0].name, input: {} }],
      ({ messages }) => {
        [seen] = messages.at(-1).content;
        return "ok";
      },
    ]);
    const agent = new Agent({ model, mcpServers: { s: mcp.custom({ request: listing(["x"], result) }) } });
    await agent.run("q");
    await agent.close();
    const told = JSON.stringify(seen.content);
    if (seen.content.length === 0 || seen.content.some(({ text }) => text === ""))
      found.push("the model is told nothing");
    if (seen.isError !== (result.isError === true)) found.push(`a failure is told as ${seen.isError}`);
    for (const { text, mimeType, uri, resource } of result.content ?? []) {
      const wanted = [text, mimeType, uri, resource?.uri, resource?.text].filter((word) => typeof word === "string");
      for (const word of wanted) {
        if (!told.includes(JSON.stringify(word).slice(1, -1))) found.push(`${word} is not shown to the model`);
      }
    }
    const isBare = result.structuredContent !== undefined && result.content?.length === 0;
    const text = seen.content.find(({ type }) => type === "text")?.text;
    if (isBare) assert.deepEqual(JSON.parse(text), result.structuredContent);
  }
  return found;
}

/** A stateless server in the same program, with tools of these names. */
function listing(names, result = { content: [] }) {
  return ({ id, method }) => {
    if (id === undefined) return undefined;
    const results = {
      "server/discover": { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } },
      "tools/list": { tools: names.map((name) => ({ name, inputSchema: { type: "object" } })) },
      "tools/call": result,
    };
    return { jsonrpc: "2.0", id, result: results[method] };
  };
}
