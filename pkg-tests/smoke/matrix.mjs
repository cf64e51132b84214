// Real MCP servers from Node through the tarball: what each lists and answers.
import assert from "node:assert/strict";
import { mcp } from "crablet";

/**
 * @param {{ shim: { url: string, token: string }, http: Record<string, string>, folder: string }} given `http` has the address
 *   of each server over HTTP, `folder` is that of the git and filesystem servers
 * @returns {Promise<string[]>} a line a server
 */
export async function callAll({ shim, http, folder }) {
  const lines = [];
  const over = async (name, server, use) => {
    const client = await mcp.connect(server, { name });
    try {
      const names = (await client.tools()).map((tool) => tool.name);
      assert.ok(names.length > 0, `${name} lists no tool`);
      await use(client);
      lines.push(`${name}: ${names.length} tools`);
    } catch (error) {
      throw new Error(`${name}: ${error.message}`, { cause: error });
    } finally {
      await client.close();
    }
  };
  const throughShim = (server) => mcp.shim({ ...shim, server });
  const gives = (tool, input, expected) => async (client) =>
    assert.match(textOf(await client.callTool(tool, input)), expected);

  await over("everything, stdio", throughShim("everything"), gives("echo", { message: "a" }, /^Echo: a$/));
  const read = gives("read_text_file", { path: `${folder}/note.txt` }, /the word is crab/);
  await over("filesystem, stdio", throughShim("filesystem"), read);
  await over("memory, stdio", throughShim("memory"), gives("read_graph", {}, /entities/));
  await over("mcp-server-time, stdio", throughShim("time"), gives("get_current_time", { timezone: "UTC" }, /UTC/));
  await over("mcp-server-git, stdio", throughShim("git"), gives("git_status", { repo_path: folder }, /note\.txt/));
  await over("everything, SSE", mcp.http(http.sse), gives("echo", { message: "old" }, /^Echo: old$/));
  await over("everything, HTTP", ...everythingElse(http.everything));
  await over("FastMCP, HTTP", mcp.http(http.fastmcp), async (client) => {
    const reports = [];
    const onProgress = ({ progress, total }) => reports.push([progress, total]);
    assert.equal(textOf(await client.callTool("add", { a: 2, b: 40 })), "42");
    assert.equal(textOf(await client.callTool("count", { to: 3 }, { onProgress })), "done");
    assert.deepEqual(
      reports,
      [1, 2, 3].map((number) => [number, 3]),
    );
    assert.equal((await client.readResource("test://x"))[0].text, "hello");
    assert.equal((await client.prompt("greet", { name: "Ada" })).messages[0].content.text, "Hi Ada");
  });
  await over("TypeScript SDK, HTTP", ...askedAndListened(http.sdk));
  return lines;
}

/** What the reference server has besides tools, with a client that offers all it can. */
function everythingElse(url) {
  const events = [];
  const seen = (wanted) => waitFor(() => events.find(wanted));
  const server = mcp.http(url, {
    roots: [{ uri: "file:///work", name: "work" }],
    sampling: () => ({ role: "assistant", model: "none", content: { type: "text", text: "a rhyme" } }),
    elicitation: {
      form: () => ({ action: "accept", content: { name: "Ada" } }),
      url: () => ({ action: "decline" }),
    },
    onEvent: (event) => events.push(event),
  });
  const use = async (client) => {
    assert.equal(events[0].type, "connected");
    const [{ uri }] = await client.resources();
    assert.equal((await client.readResource(uri))[0].uri, uri);
    assert.ok((await client.resourceTemplates()).length > 0);
    const prompts = await client.prompts();
    const plain = prompts.find((prompt) => !prompt.arguments?.length);
    assert.ok((await client.prompt(plain.name)).messages.length > 0);
    const called = prompts.find((prompt) => prompt.arguments?.some(({ name }) => name === "department"));
    const argument = { name: "department", value: "E" };
    const { values } = await client.complete({ type: "ref/prompt", name: called.name }, argument);
    assert.ok(values.length > 0);

    await client.setLogLevel("debug");
    await client.callTool("toggle-simulated-logging");
    await seen(({ type }) => type === "log");
    await client.subscribe(uri);
    await client.unsubscribe(uri);

    assert.match(
      textOf(await client.callTool("trigger-sampling-request", { prompt: "rhyme", maxTokens: 10 })),
      /a rhyme/,
    );
    assert.match(textOf(await client.callTool("trigger-elicitation-request")), /Ada/);
    assert.match(textOf(await client.callTool("get-roots-list")), /file:\/\/\/work/);
    const reports = [];
    const onProgress = ({ progress }) => reports.push(progress);
    await client.callTool("trigger-long-running-operation", { duration: 0.4, steps: 4 }, { onProgress });
    assert.deepEqual(reports, [1, 2, 3, 4]);
    assert.match(textOf(await client.callTool("simulate-research-query", { topic: "crabs" })), /crabs/);
    const { structuredContent } = await client.callTool("get-structured-content", { location: "New York" });
    assert.ok(structuredContent.temperature !== undefined);
  };
  return [server, use];
}

/** The stateless era: a question inside a result, and changes that are told of. */
function askedAndListened(url) {
  const events = [];
  const server = mcp.http(url, {
    elicitation: { form: ({ message }) => ({ action: "accept", content: { name: message } }) },
    onEvent: (event) => events.push(event),
  });
  const use = async (client) => {
    assert.equal(events[0].record.era, "stateless");
    assert.deepEqual((await client.callTool("sum", { a: 2, b: 40 })).structuredContent, { sum: 42 });
    assert.equal(textOf(await client.callTool("greet")), "hello Who are you?");
    await client.callTool("change");
    await waitFor(() => events.find(({ type }) => type === "tools-changed"));
  };
  return [server, use];
}

const textOf = ({ content }) => content.map(({ text }) => text ?? "").join("\n");

/** Resolves once something is there. */
async function waitFor(look) {
  const deadline = Date.now() + 15_000;
  while (look() === undefined) {
    if (Date.now() > deadline) throw new Error(`it never came: ${look}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
