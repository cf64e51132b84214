// The fetch tool against a real server: where it may go, how much it reads, what it tells. And the scratchpad.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, CrabletError } from "crablet";
import { scriptedModel } from "crablet/test";
import { fetchTool, Scratchpad, scratchpadTools } from "crablet/tools";
import { listen } from "../lib/servers.mjs";

const context = () => ({ callId: "call", signal: new AbortController().signal, progress() {} });
const call = (tool, input) => tool.execute(input, context());

/** A server, and the requests it got. */
async function server(t, answer) {
  const requests = [];
  const started = await listen((request, response) => {
    requests.push({ method: request.method, url: request.url, headers: request.headers });
    answer(request, response);
  });
  t.after(() => started.stop());
  return { url: started.url, requests };
}

test("a page is told with its status and type, without credentials", async (t) => {
  const site = await server(t, (_, response) => {
    response.writeHead(200, { "content-type": "text/plain; charset=utf-8", "set-cookie": "a=b" }).end("hello");
  });
  const tool = fetchTool({ origins: [site.url], headers: { "user-agent": "test" } });
  const { content, isError, details } = await call(tool, { url: `${site.url}/page?q=1` });
  assert.equal(content, "HTTP 200, text/plain; charset=utf-8\n\nhello");
  assert.equal(isError, false);
  assert.equal(details.url, `${site.url}/page`);
  await call(tool, { url: `${site.url}/again` });
  assert.equal(site.requests[1].headers.cookie, undefined);
  assert.equal(site.requests[1].headers["user-agent"], "test");
});

test("nothing is sent to an origin that is not allowed", async (t) => {
  const site = await server(t, (_, response) => response.end("never"));
  const tool = fetchTool({ origins: ["https://example.com", "https://*.example.org"] });
  const { port } = new URL(site.url);
  for (const url of [
    site.url,
    "http://example.com/",
    "https://example.com:8443/",
    "https://example.com.evil.test/",
    "https://evil-example.com/",
    "https://example.org/",
    "https://badexample.org/",
    "https://example.com@127.0.0.1/",
    `http://user:secret@127.0.0.1:${port}/`,
    "file:///etc/passwd",
    "data:text/plain,hi",
    "javascript:alert(1)",
    "/relative",
    "",
  ]) {
    await assert.rejects(call(tool, { url }), /not allowed|is not a URL/, url);
  }
  assert.equal(site.requests.length, 0);
});

test("a redirect is followed only to where a request would be allowed", async (t) => {
  const other = await server(t, (_, response) => response.end("other"));
  const site = await server(t, ({ url }, response) => {
    const to = {
      "/in": "/end",
      "/out": `${other.url}/x`,
      "/loop": "/loop",
      "/odd": "http://[",
      "/user": "http://u:p@localhost/",
    };
    const location = to[url];
    if (location === undefined) return response.end("end");
    return response.writeHead(302, { location }).end();
  });
  const tool = fetchTool({ origins: [site.url] });
  assert.match((await call(tool, { url: `${site.url}/in` })).content, /end$/);
  await assert.rejects(
    call(tool, { url: `${site.url}/out` }),
    /redirects to http:\/\/127\.0\.0\.1:\d+, and requests to that are not allowed/,
  );
  await assert.rejects(call(tool, { url: `${site.url}/loop` }), /more than 5 times/);
  await assert.rejects(call(tool, { url: `${site.url}/odd` }), /not an address/);
  await assert.rejects(call(tool, { url: `${site.url}/user` }), /not allowed/);
  assert.equal(other.requests.length, 0);
});

test("a long answer is cut, an endless one too, a slow one ends", async (t) => {
  const site = await server(t, ({ url }, response) => {
    if (url === "/slow") return;
    response.writeHead(200, { "content-type": "text/plain" });
    if (url === "/long") response.end("é".repeat(1_000));
    else {
      const more = () =>
        response.destroyed || (response.write("x".repeat(1_000)) ? setImmediate(more) : response.once("drain", more));
      more();
    }
  });
  const tool = fetchTool({ origins: [site.url], maxBytes: 101, timeoutMs: 100 });
  const { content, details } = await call(tool, { url: `${site.url}/long` });
  assert.equal(content, `HTTP 200, text/plain\n\n${"é".repeat(50)}\n[cut after 101 bytes]`);
  assert.equal(details.isCut, true);
  assert.match((await call(tool, { url: `${site.url}/endless` })).content, /x{101}\n\[cut after 101 bytes\]$/);
  await assert.rejects(call(tool, { url: `${site.url}/slow` }), /did not answer within 0\.1 s/);
});

test("failures are told: a status, data that is no text, a server that is not there", async (t) => {
  const site = await server(t, ({ url }, response) => {
    if (url === "/gone") response.writeHead(404, { "content-type": "text/plain" }).end("gone");
    else response.writeHead(200, { "content-type": "image/png" }).end(Buffer.from([137, 80, 78, 71, 0, 1]));
  });
  const tool = fetchTool({ origins: [site.url, "http://127.0.0.1:1"] });
  const gone = await call(tool, { url: `${site.url}/gone` });
  assert.deepEqual([gone.content, gone.isError], ["HTTP 404, text/plain\n\ngone", true]);
  assert.match((await call(tool, { url: `${site.url}/image` })).content, /\[6 bytes that are no text\]/);
  await assert.rejects(call(tool, { url: "http://127.0.0.1:1/?key=secret" }), (error) => {
    assert.match(error.message, /no answer from http:\/\/127\.0\.0\.1:1/);
    return !error.message.includes("secret");
  });
});

test("other methods are opted into, and ask", async (t) => {
  const site = await server(t, (request, response) => request.pipe(response));
  const reading = fetchTool({ origins: [site.url] });
  assert.equal(reading.needsApproval, false);
  assert.equal(reading.repeatable, true);
  await assert.rejects(call(reading, { url: site.url, method: "POST" }), /POST is not allowed; allowed are: GET, HEAD/);
  const tool = fetchTool({ origins: [site.url], methods: ["GET", "POST"] });
  assert.equal(tool.repeatable, false);
  assert.equal(tool.needsApproval({ url: site.url }), false);
  assert.equal(tool.needsApproval({ url: site.url, method: "POST" }), true);
  assert.match((await call(tool, { url: site.url, method: "POST", body: '{"a":1}' })).content, /\{"a":1\}$/);
  assert.equal(site.requests[0].headers["content-type"], "application/json");
  await assert.rejects(call(tool, { url: site.url, body: "x" }), /a GET request has no body/);
});

test("an abort of the run aborts the request", async (t) => {
  const site = await server(t, () => {});
  const tool = fetchTool({ origins: [site.url] });
  const controller = new AbortController();
  const asked = tool.execute({ url: site.url }, { ...context(), signal: controller.signal });
  controller.abort(new Error("stopped"));
  await assert.rejects(asked, /stopped/);
});

test("origins are checked where the tool is made", () => {
  for (const origins of [
    undefined,
    [],
    ["example.com"],
    ["https://example.com/path"],
    ["*"],
    ["https://*"],
    ["ftp://a"],
    ["https://a@b"],
  ]) {
    assert.throws(
      () => fetchTool({ origins }),
      (error) => CrabletError.is(error) && error.kind === "invalid-input",
      String(origins),
    );
  }
});

test("two agents share a scratchpad", async () => {
  const pad = new Scratchpad();
  const ask = (toolName, input) => [{ type: "tool-call", toolName, input }];
  const writer = new Agent({
    model: scriptedModel([ask("writeScratchpad", { key: "plan", value: "rest" }), "ok"]),
    tools: scratchpadTools(pad),
  });
  const model = scriptedModel([ask("readScratchpad", { key: "plan" }), "ok"]);
  const reader = new Agent({ model, tools: scratchpadTools(pad) });
  await writer.run("go");
  await reader.run("go");
  assert.equal(model.requests[1].messages.at(-1).content[0].content[0].text, "rest");
  assert.deepEqual(JSON.parse(JSON.stringify(pad)), { plan: "rest" });
});

test("a scratchpad has limits and says what is in it", async () => {
  const pad = new Scratchpad({ a: "1", __proto__x: "2" });
  const { readScratchpad, writeScratchpad } = scratchpadTools(pad);
  assert.equal(await call(readScratchpad, {}), "a (1 characters)\n__proto__x (1 characters)");
  await assert.rejects(async () => call(readScratchpad, { key: "b" }), /no note "b". There are:\na/);
  await assert.rejects(
    async () => call(writeScratchpad, { key: "b", value: "x".repeat(100_001) }),
    /may have 100000: shorten/,
  );
  await assert.rejects(async () => call(writeScratchpad, { key: "", value: "x" }), /a key has 1 to 200/);
  await call(writeScratchpad, { key: "__proto__", value: "kept" });
  assert.equal(await call(readScratchpad, { key: "__proto__" }), "kept");
  await call(writeScratchpad, { key: "a" });
  await assert.rejects(async () => call(writeScratchpad, { key: "a" }), /there is no note/);
  for (let number = 0; number < 20; number += 1) pad.set("a", "x".repeat(100_000));
  for (let number = 0; number < 18; number += 1) pad.set(`key ${number}`, "x".repeat(100_000));
  pad.set("half", "x".repeat(99_990));
  assert.throws(() => pad.set("last", "x".repeat(10)), /full/);
});
