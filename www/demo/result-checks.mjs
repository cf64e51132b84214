// What must hold for what tools return, for the price of a run, and for a page that is away from its own server or used without a
// pointer. Suites of checks.mjs.
import assert from "node:assert/strict";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { handshakeServer } from "../../pkg-tests/lib/mcp-servers.mjs";
import { CORS, listen } from "../../pkg-tests/lib/servers.mjs";

/** A second of silence: what a browser takes for a sound. */
function silence() {
  const rate = 8_000;
  const bytes = Buffer.alloc(44 + rate, 128);
  bytes.write("RIFF");
  bytes.writeUInt32LE(36 + rate, 4);
  bytes.write("WAVEfmt ", 8);
  bytes.writeUInt32LE(16, 16);
  for (const [value, offset] of [
    [1, 20],
    [1, 22],
    [1, 32],
    [8, 34],
  ])
    bytes.writeUInt16LE(value, offset);
  bytes.writeUInt32LE(rate, 24);
  bytes.writeUInt32LE(rate, 28);
  bytes.write("data", 36);
  bytes.writeUInt32LE(rate, 40);
  return bytes.toString("base64");
}

const PLANETS = [
  { name: "Mercury", moons: 0 },
  { name: "Mars", moons: 2 },
];

/** A tool server over HTTP with a sound, a table, and a call that reports how far it is until `finish` is called. */
async function startStudio() {
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  const tool = (name, description) => ({ name, description, inputSchema: { type: "object", properties: {} } });
  const answer = handshakeServer({
    "tools/list": () => ({
      tools: [tool("play_sound", "Plays"), tool("get_planets_table", "Shows"), tool("start_rendering", "Renders")],
    }),
    "tools/call": async ({ name }) => {
      if (name === "play_sound") return { content: [{ type: "audio", mimeType: "audio/wav", data: silence() }] };
      if (name === "start_rendering") {
        await finished;
        return { content: [{ type: "text", text: "rendered" }] };
      }
      return { content: [{ type: "text", text: "two planets" }], structuredContent: { planets: PLANETS } };
    },
  });
  const server = await listen(async (request, response) => {
    if (request.method !== "POST") return response.writeHead(request.method === "OPTIONS" ? 204 : 405, CORS).end();
    const message = await json(request);
    response.writeHead(message.id === undefined ? 202 : 200, { ...CORS, "content-type": "text/event-stream" });
    const send = (value) => response.write(`data: ${JSON.stringify(value)}\n\n`);
    const progressToken = message.params?._meta?.progressToken;
    if (message.params?.name === "start_rendering" && progressToken !== undefined) {
      const params = { progressToken, progress: 3, total: 7, message: "mixing the colours" };
      send({ jsonrpc: "2.0", method: "notifications/progress", params });
    }
    const reply = await answer(message, {});
    if (reply !== undefined) send(reply);
    response.end();
  });
  return { url: `${server.url}/mcp`, finish, stop: server.stop };
}

export async function results({ check, playground, screenshotFolder }) {
  const { page } = playground;
  const studio = await startStudio();
  try {
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByLabel("Name", { exact: true }).fill("studio");
    await page.getByRole("textbox", { name: "Address" }).fill(studio.url);
    await page.getByRole("button", { name: "Connect", exact: true }).click();
    await page.locator('.server[data-server="studio"][data-state="ready"]').waitFor();

    await check("a sound that a tool returns can be played", async () => {
      await playground.ask("Play the sound");
      await page.locator(".tool-card summary").last().click();
      const sound = page.locator(".tool-card audio").last();
      await sound.waitFor();
      await page.waitForFunction((audio) => audio.duration > 0.9, await sound.elementHandle());
    });

    await check("structured values are a table", async () => {
      await playground.ask("Get the planets table");
      await page.locator(".tool-card summary").last().click();
      const table = page.locator(".tool-card table").last();
      assert.deepEqual(await table.locator("th").allInnerTexts(), ["name", "moons"]);
      assert.deepEqual(await table.locator("td").allInnerTexts(), ["Mercury", "0", "Mars", "2"]);
      assert.deepEqual(await playground.accessibilityFaults(), []);
      await page.screenshot({ path: join(screenshotFolder, "table-1280.png") });
    });

    await check("while a tool works its card says how far it is", async () => {
      await playground.send("Start the rendering");
      await page.locator('.tool-card[data-status="running"] summary').click();
      await page.locator(".tool-card .scrollable", { hasText: "mixing the colours" }).waitFor();
      studio.finish();
      assert.match(await playground.answered(), /rendered/);
    });
  } finally {
    await page.getByRole("button", { name: "Remove studio" }).click();
    await studio.stop();
  }
}

/** Passes requests on to the scripted model under the name that it answers to. */
async function startPricedModel(modelUrl) {
  const server = await listen(async (request, response) => {
    if (request.method === "OPTIONS") return response.writeHead(204, CORS).end();
    const answer = await fetch(`${modelUrl}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...(await json(request)), model: "scripted-demo" }),
    });
    response.writeHead(answer.status, { ...CORS, "content-type": "text/event-stream" });
    for await (const chunk of answer.body) response.write(chunk);
    response.end();
  });
  return { url: `${server.url}/v1`, stop: server.stop };
}

export async function prices({ check, demo, playground }) {
  const { page } = playground;
  const model = await startPricedModel(demo.modelUrl);
  const choice = page.getByLabel("Who answers");
  const before = await choice.inputValue();
  try {
    await check("what a run costs is told where the price of the model is known", async () => {
      await choice.selectOption("openai");
      await playground.configure({ model: "gpt-5.4", baseUrl: model.url });
      await page.locator("#api-key").fill("any-key");
      await playground.ask("Count to 5");
      await page.getByRole("tab", { name: "Inspector" }).click();
      const words = await page.locator(".amounts", { hasText: "$" }).first().textContent();
      assert.match(words, /[\d,]+ tokens in.*[\d,]+ out, \$0\.0\d+/);
      await page.getByRole("tab", { name: "Connection" }).click();
    });
  } finally {
    await page.locator("#api-key").fill("");
    await choice.selectOption(before);
    await model.stop();
  }
}

export async function alone({ check, demo, playground }) {
  const { page } = playground;
  await check("once it is loaded the page needs its own server no more", async () => {
    const own = `${new URL(demo.pageAddress).origin}/**`;
    const asked = [];
    await page.route(own, (route) => {
      asked.push(route.request().url());
      return route.abort();
    });
    try {
      await playground.newConversation();
      assert.match(await playground.ask("Count to 3"), /1, 2, 3/);
      await playground.ask("List the folder");
      for (const tab of ["Inspector", "Connection"]) await page.getByRole("tab", { name: tab }).click();
      await page.getByRole("button", { name: "Dark or light" }).click();
      await page.getByRole("button", { name: "Dark or light" }).click();
      assert.deepEqual(asked, []);
    } finally {
      await page.unroute(own);
    }
  });

  await check("dark and light can be chosen, whatever the system says", async () => {
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const before = await background();
    await page.getByRole("button", { name: "Dark or light" }).click();
    const other = await background();
    assert.notEqual(other, before);
    await page.reload();
    await page.locator("#prompt").waitFor();
    assert.equal(await background(), other, "the choice is kept");
    await page.getByRole("button", { name: "Dark or light" }).click();
    assert.equal(await background(), before);
  });

  await check("a conversation and the panel work without a pointer", async () => {
    const tabTo = async (selector, text) => {
      const isThere = () =>
        page.evaluate(
          ([wanted, words]) =>
            document.activeElement.matches(wanted) && document.activeElement.textContent.includes(words),
          [selector, text],
        );
      for (let presses = 0; presses < 60 && !(await isThere()); presses += 1) await page.keyboard.press("Tab");
      assert.ok(await isThere(), `Tab does not reach ${text}`);
    };
    await page.locator('.server[data-server="files"][data-state="ready"]').waitFor();
    await playground.newConversation();
    await page.locator("#prompt").focus();
    await page.keyboard.type("List the folder");
    await page.keyboard.press("Enter");
    await playground.answered();
    await page.evaluate(() => document.querySelector(".header button")?.focus());
    await tabTo(".tool-card summary", "list_directory");
    await page.keyboard.press("Enter");
    await page.locator(".tool-card[open]").waitFor();
    await tabTo("[role=tab]", "Connection");
    await page.keyboard.press("ArrowRight");
    await page.locator(".waterfall").waitFor();
    await tabTo(".events summary", "run-start");
    await page.keyboard.press("Enter");
    await page.locator(".events details[open]").waitFor();
    await page.getByRole("tab", { name: "Connection" }).click();
  });
}
