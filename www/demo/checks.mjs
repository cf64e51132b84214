// What must hold in the demo, from the user's side. Each suite is a function of the running demo and the open page.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Demo, expectGone } from "./demo-process.mjs";
import { freePort, startEverything } from "./everything.mjs";
import { askAsAgent } from "./local-agent.mjs";
import { alone, prices, results } from "./result-checks.mjs";
import { providers, signingIn } from "./connection-checks.mjs";
import { sampleServer, setUp } from "./setup.mjs";
import { startShim } from "./shim.mjs";

/** The most layout shift that streaming may cause; Chromium's own limit for "good" is ten times as much. */
const MAX_LAYOUT_SHIFT = 0.01;

const random = () => randomBytes(6).toString("hex");

/** Writes a file that nobody can have known before, into the folder lent to the agent. */
async function surprise(demo) {
  const file = { name: `note-${random()}.txt`, content: `the word is ${random()}` };
  await writeFile(join(demo.filesFolder, file.name), `${file.content}\n`);
  return file;
}

async function tools({ check, demo, playground }) {
  const { page } = playground;
  await check("the page connects to the MCP server through the shim and lists its tools", async () => {
    await page.locator('.server[data-server="files"][data-state="ready"]').waitFor();
    const count = Number.parseInt(
      await playground.server("files").locator('.offers[data-kind="tool"] > summary').textContent(),
      10,
    );
    assert.ok(count >= 10, `${count} tools`);
  });

  await check("a file with a random name and content is read by a real tool and quoted in the answer", async () => {
    const file = await surprise(demo);
    const answer = await playground.ask(`Read ${file.name}`);
    assert.ok(answer.includes(file.content), answer);
    const cards = await playground.toolCards();
    assert.deepEqual(
      cards.map((card) => card.status),
      ["ok"],
    );
  });

  await check("two things are asked of two tools in parallel", async () => {
    const [one, two] = [await surprise(demo), await surprise(demo)];
    const answer = await playground.ask(`Read ${one.name} and ${two.name}`);
    assert.ok(answer.includes(one.content) && answer.includes(two.content), answer);
    const cards = await playground.toolCards();
    assert.deepEqual(
      cards.map((card) => card.status),
      ["ok", "ok"],
    );
    const lastStart = Math.max(...cards.map((card) => card.started));
    const firstEnd = Math.min(...cards.map((card) => card.ended));
    assert.ok(lastStart <= firstEnd, `the second began ${lastStart - firstEnd} ms after the first had ended`);
  });

  await check("a tool that fails is shown as failed, and the agent goes on", async () => {
    const answer = await playground.ask("Read no-such-file.txt");
    assert.deepEqual(
      (await playground.toolCards()).map((card) => card.status),
      ["error"],
    );
    assert.match(answer, /no-such-file/);
  });
}

async function streaming({ check, demo, playground }) {
  const { page } = playground;
  await check("the answer streams, and nothing jumps while it does", async () => {
    await page.evaluate(() => {
      globalThis.layoutShift = 0;
      globalThis.lengths = new Set();
      globalThis.watch = setInterval(
        () => globalThis.lengths.add([...document.querySelectorAll(".markdown")].at(-1)?.textContent.length),
        20,
      );
    });
    const answer = await playground.ask("Count to 300");
    assert.ok(answer.includes("299, 300"), answer);
    const { lengths, shift } = await page.evaluate(() => {
      clearInterval(globalThis.watch);
      return { lengths: globalThis.lengths.size, shift: globalThis.layoutShift };
    });
    assert.ok(lengths > 5, `the text was seen at ${lengths} lengths`);
    assert.ok(shift <= MAX_LAYOUT_SHIFT, `layout shift ${shift}`);
  });

  await check("abort in the middle of a stream ends it at once, and the model's server sees the close", async () => {
    const from = demo.lines.length;
    await playground.send("Count to 2000");
    await playground.sees("20, 21");
    await page.getByRole("button", { name: "Stop" }).click();
    const answer = await playground.answered();
    assert.ok(answer.includes("20, 21") && !answer.includes("1999"), "what had come stays, the rest does not come");
    assert.equal(await playground.error(), undefined);
    await demo.line(/the client closed the stream/, from);
    assert.ok((await playground.ask("Count to 3")).includes("1, 2, 3"), "the next prompt works");
  });

  await check("a message sent while the agent works steers it", async () => {
    const file = await surprise(demo);
    await playground.send("Count to 300");
    await playground.sees("20, 21");
    const answer = await playground.ask(`Read ${file.name}`);
    assert.ok(answer.includes(file.content), answer);
  });
}

async function followUps({ check, playground }) {
  const { page } = playground;
  await check("a message can wait until the agent is done", async () => {
    await playground.send("Count to 200");
    await playground.sees("20, 21");
    await page.locator("#prompt").fill("Count to 7");
    await page.getByRole("button", { name: "Send when the agent is done" }).click();
    const answer = await playground.answered();
    assert.ok(answer.includes("1, 2, 3, 4, 5, 6, 7") && !answer.includes("200"), answer);
  });
}

async function badInput({ check, demo, playground, screenshotFolder }) {
  const good = { model: "scripted-demo", baseUrl: demo.modelUrl };
  const works = async () => {
    await playground.configure(good);
    const file = await surprise(demo);
    assert.ok((await playground.ask(`Read ${file.name}`)).includes(file.content), "the next prompt works");
  };
  const failures = [
    ["a wrong key", { model: "bad-key" }, ["auth"], /key/i],
    ["a model that does not exist", { model: "no-such-model" }, ["bad-request"], /no-such-model/],
    ["status 200 with an error inside", { model: "error-200" }, ["server"], /failed after the status/],
    ["an error in the middle of the stream", { model: "error-in-stream" }, ["server"], /failed while/],
    ["a stream cut in the middle", { model: "cut" }, ["network", "stream-truncated"], /./],
    ["a stream without its end marker", { model: "cut-clean" }, ["stream-truncated"], /./],
    ["an overloaded model", { model: "overloaded" }, ["overloaded"], /overloaded/i],
    [
      "a server that cannot be reached",
      { baseUrl: `http://127.0.0.1:${await freePort()}/v1` },
      ["network"],
      /127\.0\.0\.1/,
    ],
    ["an address that is none", { baseUrl: "somewhere" }, ["invalid-input"], /address/],
  ];
  for (const [what, change, kinds, words] of failures) {
    await check(`${what} is told where the answer would be, and the next prompt works`, async () => {
      await playground.configure({ ...good, ...change });
      await playground.ask("Hello there");
      const error = await playground.error();
      assert.ok(error, "an error is shown");
      assert.ok(kinds.includes(error.kind), `kind ${error.kind}: ${error.text}`);
      assert.match(error.text, words);
      if (change.model === "bad-key")
        await playground.page.screenshot({ path: join(screenshotFolder, "error-1280.png") });
      await works();
    });
  }

  await check("an overloaded model is tried again, and the page says so", async () => {
    await playground.configure({ ...good, model: "overloaded-once" });
    assert.ok((await playground.ask("Count to 4")).includes("1, 2, 3, 4"));
    assert.equal((await playground.notices()).length, 1);
    await playground.configure(good);
  });

  for (const model of ["malformed-arguments", "unknown-tool"]) {
    await check(
      `a call with ${model === "unknown-tool" ? "an unknown tool" : "malformed arguments"} is not run, and the model is told`,
      async () => {
        await playground.configure({ ...good, model });
        const answer = await playground.ask("Use a tool");
        assert.deepEqual(
          (await playground.toolCards()).map((card) => card.status),
          ["error"],
        );
        assert.notEqual(answer, "");
        await works();
      },
    );
  }
}

async function httpServer({ check, playground, screenshotFolder }) {
  const { page } = playground;
  const everything = await startEverything();
  try {
    await check("an MCP server over Streamable HTTP can be added, and its tools called", async () => {
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.getByLabel("Name", { exact: true }).fill("everything");
      await page.getByRole("textbox", { name: "Address" }).fill(everything.url);
      await page.getByRole("button", { name: "Connect", exact: true }).click();
      await page.locator('.server[data-server="everything"][data-state="ready"]').waitFor();
      const word = random();
      assert.match(await playground.ask(`Echo "${word}" please`), new RegExp(`Echo: ${word}`));
      assert.match(await playground.ask("Get the sum of 19 and 23"), /42/);
    });

    await check("a tool can be tried by hand, with wrong input too", async () => {
      const server = playground.server("everything");
      await server.getByText(/^\d+ tools$/).click();
      const entry = server.locator(".offer", { has: page.getByText("echo", { exact: true }) });
      // Its title and the server's hints about it.
      await entry.getByText("Echo Tool").waitFor();
      await entry.locator("summary").click();
      await entry.getByLabel("Input, as JSON").fill('{"message": ');
      await entry.getByRole("button", { name: "Call it" }).click();
      await entry.getByText("The input is not JSON").waitFor();
      await entry.getByLabel("Input, as JSON").fill('{"message": "by hand"}');
      await entry.getByRole("button", { name: "Call it" }).click();
      await entry.getByText("Echo: by hand").waitFor();
      await server.getByText(/^\d+ tools$/).click();
    });

    await check("resources can be read by hand, those of a template too, and a wrong address is told", async () => {
      const server = playground.server("everything");
      await server.getByText(/^\d+ resources$/).click();
      const listed = server.locator(".offer", { hasText: "demo://resource/static/document/features.md" });
      await listed.locator("summary").click();
      await listed.getByRole("button", { name: "Read it" }).click();
      await listed.getByText("Everything Server", { exact: false }).last().waitFor();
      const template = server.locator(".offer", { hasText: "demo://resource/dynamic/text/{resourceId}" });
      await template.locator("summary").click();
      await template.getByRole("textbox").fill("demo://resource/dynamic/text/none");
      await template.getByRole("button", { name: "Read it" }).click();
      await template.getByRole("alert").waitFor();
      const id = String(1 + Math.floor(Math.random() * 1_000_000));
      await template.getByRole("textbox").fill(`demo://resource/dynamic/text/${id}`);
      await template.getByRole("button", { name: "Read it" }).click();
      await template.getByText(`Resource ${id}: This is a plaintext resource`).waitFor();
      assert.deepEqual(await playground.accessibilityFaults(), []);
      await page.screenshot({ path: join(screenshotFolder, "resources-1280.png") });
      await server.getByText(/^\d+ resources$/).click();
    });

    await check("a prompt is filled in by hand, and becomes the message to be sent", async () => {
      const server = playground.server("everything");
      await server.getByText(/^\d+ prompts$/).click();
      const entry = server.locator(".offer", { hasText: "Arguments Prompt" });
      await entry.locator("summary").click();
      await entry.getByRole("button", { name: "Fill it in" }).click();
      await entry.getByRole("alert").waitFor();
      const city = `Town ${random()}`;
      await entry.getByLabel("city").fill(city);
      await entry.getByRole("button", { name: "Fill it in" }).click();
      await entry.getByText(`What's weather in ${city}?`).waitFor();
      await entry.getByRole("button", { name: "Use as my message" }).click();
      await entry.getByRole("status").filter({ hasText: "stands in the message field" }).waitFor();
      assert.equal(await page.locator("#prompt").inputValue(), `What's weather in ${city}?`);
      await page.emulateMedia({ colorScheme: "dark" });
      assert.deepEqual(await playground.accessibilityFaults(), []);
      await page.screenshot({ path: join(screenshotFolder, "prompt-1280-dark.png") });
      await page.emulateMedia({ colorScheme: "light" });
      await page.locator("#prompt").fill("");
      await server.getByText(/^\d+ prompts$/).click();
    });

    await check("the server's suggestions for an argument follow what stands in the others", async () => {
      const server = playground.server("everything");
      await server.getByText(/^\d+ prompts$/).click();
      const entry = server.locator(".offer", { hasText: "Team Management" });
      await entry.locator("summary").click();
      const suggested = (value) => entry.locator(`datalist option[value="${value}"]`).waitFor({ state: "attached" });
      await entry.getByLabel("department").pressSequentially("Eng");
      await suggested("Engineering");
      await entry.getByLabel("department").fill("Sales");
      await entry.getByLabel("name").focus();
      await suggested("David");
      await server.getByText(/^\d+ prompts$/).click();
    });

    await check("the inspector shows what went over HTTP to the model and to the server, and no key", async () => {
      const key = `key-${random()}`;
      await page.locator("#api-key").fill(key);
      const word = random();
      await playground.ask(`Echo "${word}" please`);
      await page.locator("#api-key").fill("");
      await page.getByRole("tab", { name: "Inspector" }).click();
      const row = (place) => page.locator(".exchanges li", { hasText: place }).last();
      await row("/v1/chat/completions").locator("summary").click();
      const texts = row("/v1/chat/completions").locator(".scrollable");
      await texts.filter({ hasText: "data: [DONE]" }).waitFor();
      assert.match((await texts.allTextContents()).join("\n"), new RegExp(word));
      assert.match(await texts.first().textContent(), /authorization: \(hidden\)/);
      await page.locator(".exchanges li", { hasText: "/mcp" }).last().waitFor();
      assert.ok(!(await page.locator(".panel").textContent()).includes(key));
      assert.deepEqual(await playground.accessibilityFaults(), []);
      await row("/v1/chat/completions").scrollIntoViewIfNeeded();
      assert.deepEqual(await playground.widerThanThePage(".panel *"), []);
      await page.screenshot({ path: join(screenshotFolder, "requests-1280.png") });
      await page.getByRole("tab", { name: "Connection" }).click();
    });

    await check("a picture that a tool returns is shown", async () => {
      await playground.ask("Get the tiny image");
      await page.locator(".tool-card summary").last().click();
      const picture = page.locator(".tool-card img").last();
      await picture.waitFor();
      assert.ok(await picture.evaluate((image) => image.decode().then(() => image.naturalWidth > 0)));
    });

    await check("a person can be asked before each tool call, and allow or deny it", async () => {
      const ask = page.getByLabel("Ask me before each tool call");
      await ask.check();
      try {
        const word = random();
        await playground.send(`Echo "${word}" please`);
        await page.getByRole("button", { name: "Deny" }).click();
        assert.doesNotMatch(await playground.answered(), new RegExp(`Echo: ${word}`));
        assert.deepEqual(
          (await playground.toolCards()).map((card) => card.status),
          ["error"],
        );
        await playground.send(`Echo "${word}" again`);
        await page.getByRole("button", { name: "Allow" }).click();
        assert.match(await playground.answered(), new RegExp(`Echo: ${word}`));
      } finally {
        await ask.uncheck();
      }
    });

    await check(
      "what a server asks for is shown as a form that names it, and sent or declined by the user",
      async () => {
        const dialog = page.getByRole("dialog");
        await playground.send("Trigger the elicitation request");
        await dialog.getByText("everything").waitFor();
        const name = `Ada ${random()}`;
        await dialog.getByLabel("String", { exact: true }).fill(name);
        assert.deepEqual(await playground.accessibilityFaults(), []);
        await page.screenshot({ path: join(screenshotFolder, "elicitation.png") });
        await dialog.getByRole("button", { name: "Send" }).click();
        await playground.answered();
        assert.match((await playground.toolCards())[0].text, new RegExp(name));
        await playground.send("Trigger the elicitation request");
        await dialog.getByRole("button", { name: "Decline" }).click();
        await playground.answered();
        assert.match((await playground.toolCards())[0].text, /decline/i);
        assert.equal(await dialog.count(), 0);
      },
    );

    await check("abort in the middle of a tool ends it at once, and the next prompt works", async () => {
      await playground.send("Trigger the long running operation");
      await page.locator('.tool-card[data-status="running"]').waitFor();
      await page.getByRole("button", { name: "Stop" }).click();
      await playground.answered();
      const cards = await playground.toolCards();
      assert.ok(["stopped", "error"].includes(cards[0]?.status), JSON.stringify(cards));
      assert.ok(cards[0].ended - cards[0].started < 5_000, "it did not wait for the tool");
      assert.ok((await playground.ask("Count to 3")).includes("1, 2, 3"));
    });

    await check("an MCP server that ends while it is used is told as an error", async () => {
      await playground.send("Trigger the long running operation");
      await page.locator('.tool-card[data-status="running"]').waitFor();
      await everything.stop();
      await playground.answered();
      assert.deepEqual(
        (await playground.toolCards()).map((card) => card.status),
        ["error"],
      );
    });
  } finally {
    await everything.stop();
    await playground
      .server("everything")
      .getByRole("button", { name: /Remove/ })
      .click();
  }
}

async function pairing({ check, demo, playground, screenshotFolder }) {
  const { page } = playground;
  const folder = await mkdtemp(join(tmpdir(), "crablet-pairing-"));
  const server = await sampleServer(demo.filesFolder);
  const shim = await startShim({
    binary: await setUp(() => {}),
    folder,
    origin: new URL(demo.pageAddress).origin,
    servers: { notes: server, files: server },
    log: () => {},
    onExit: () => {},
  });
  const openForm = async () => {
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByLabel("Shim code").check();
    await page.getByLabel("Shim address").fill(shim.url);
  };
  try {
    await check("a code that is none and one that is wrong are told in the form", async () => {
      await openForm();
      const form = page.getByRole("form", { name: "Add a tool server" });
      await form.getByLabel("Pairing code").fill("abc");
      await form.getByRole("button", { name: "Connect" }).click();
      await form.getByRole("alert").waitFor();
      const code = await shim.pair();
      await form.getByLabel("Pairing code").fill([...code].reverse().join(""));
      await form.getByRole("button", { name: "Connect" }).click();
      await form.getByRole("alert").filter({ hasText: /code/ }).waitFor();
      assert.deepEqual(await playground.accessibilityFaults(), []);
      await page.screenshot({ path: join(screenshotFolder, "pairing-1280.png") });
      await form.getByRole("button", { name: "Cancel" }).click();
    });

    await check("the code of the shim's terminal connects its servers, and takes no other one's place", async () => {
      await openForm();
      await page.getByLabel("Pairing code").fill(await shim.pair());
      await page.getByRole("button", { name: "Connect", exact: true }).click();
      await page.locator('.server[data-server="notes"][data-state="ready"]').waitFor();
      await page.getByText(/The code was right, but files is not added/).waitFor();
      await page.getByRole("button", { name: "Cancel" }).click();
      const [{ url }] = await serversOf(demo);
      assert.equal(await playground.server("files").locator(".server-address").textContent(), url);
    });
  } finally {
    // None is there where the check failed.
    for (const button of await playground
      .server("notes")
      .getByRole("button", { name: /Remove/ })
      .all())
      await button.click();
    await shim.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function exposing({ check, demo, playground, screenshotFolder }) {
  const { page } = playground;
  const folder = await mkdtemp(join(tmpdir(), "crablet-exposing-"));
  const shim = await startShim({
    binary: await setUp(() => {}),
    folder,
    origin: new URL(demo.pageAddress).origin,
    servers: { notes: await sampleServer(demo.filesFolder) },
    log: () => {},
    onExit: () => {},
  });
  const letIn = async (...further) => {
    await page.getByRole("button", { name: "Let them in" }).click();
    const form = page.getByRole("form", { name: "Let agents of this machine in" });
    await form.getByLabel("Shim address").fill(shim.url);
    await form.getByLabel("Pairing code").fill(await shim.pair("--expose", ...further));
    await form.getByRole("button", { name: "Connect" }).click();
  };
  const row = (tool, offered) => page.locator(`[data-tool="${tool}"][data-offered="${offered}"]`);
  const stop = () => page.locator(".panel").getByRole("button", { name: "End it" }).click();
  const toolNames = async () => (await askAsAgent(shim, "tools/list")).tools.map(({ name }) => name);
  const call = async (tool, input) => {
    const name = (await toolNames()).find((offered) => offered.endsWith(tool));
    const { content } = await askAsAgent(shim, "tools/call", { name, arguments: input });
    return content[0].text;
  };
  try {
    await check(
      "agents of this machine get the page's tool that only reads, and the page says which is withheld",
      async () => {
        await letIn();
        await row("read_conversation", "yes").waitFor();
        await row("ask_agent", "no").filter({ hasText: "destroy" }).waitFor();
        assert.deepEqual(
          (await toolNames()).map((name) => name.endsWith("_read_conversation")),
          [true],
        );
        await row("ask_agent", "no").scrollIntoViewIfNeeded();
        for (const colorScheme of ["dark", "light"]) {
          await page.emulateMedia({ colorScheme });
          assert.deepEqual(await playground.accessibilityFaults(), []);
          await page.screenshot({ path: join(screenshotFolder, `exposed-1280-${colorScheme}.png`) });
        }
        await stop();
        await page.getByRole("button", { name: "Let them in" }).waitFor();
      },
    );

    await check("an agent that is let in asks the page's agent, and reads what was said", async () => {
      await playground.newConversation();
      await letIn("--allow-destructive");
      await row("ask_agent", "yes").waitFor();
      const file = await surprise(demo);
      assert.match(await call("_ask_agent", { message: `Read ${file.name}` }), new RegExp(file.content));
      assert.ok((await playground.answered()).includes(file.content), "the page shows it too");
      const said = await call("_read_conversation", {});
      assert.ok(said.startsWith(`User: Read ${file.name}`) && said.includes(file.content), said);
      await stop();
      await page.getByRole("button", { name: "Let them in" }).waitFor();
      assert.equal(await page.locator(".exposed-tools li").count(), 0);
    });
  } finally {
    await shim.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** The servers that the demo hands to its page. */
async function serversOf(demo) {
  const address = new URL(demo.pageAddress);
  const response = await fetch(new URL(`demo-${address.hash.slice("#demo=".length)}.json`, address));
  const { servers } = await response.json();
  return servers;
}

/** The tokens among them. */
async function secretsOf(demo) {
  const servers = await serversOf(demo);
  const secrets = servers.map(({ token }) => token).filter((token) => token !== undefined);
  assert.ok(secrets.length > 0);
  return secrets;
}

async function sessions({ check, demo, playground, screenshotFolder }) {
  const { page } = playground;
  await check("a conversation can be saved to a file, and taken up from it", async () => {
    const file = await surprise(demo);
    await page.locator('.server[data-server="files"][data-state="ready"]').waitFor();
    await playground.newConversation();
    await playground.ask(`Read ${file.name}`);
    await page.getByRole("tab", { name: "Inspector" }).click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save to a file" }).click(),
    ]);
    const path = await download.path();
    const saved = await readFile(path, "utf8");
    for (const secret of await secretsOf(demo)) assert.ok(!saved.includes(secret), "no secret is in the file");
    await playground.newConversation();
    await page.getByLabel("Load a file").setInputFiles(path);
    await page.getByRole("tab", { name: "Connection" }).click();
    await playground.sees(file.content);
    assert.deepEqual(
      (await playground.toolCards()).map((card) => card.status),
      ["ok"],
    );
    assert.ok((await playground.ask("Count to 3")).includes("1, 2, 3"));
  });

  await check("one can go on from an earlier message, come back to what was left, and fork", async () => {
    await playground.newConversation();
    await playground.ask("Count to 3");
    await playground.ask("Count to 4");
    await page.getByRole("tab", { name: "Inspector" }).click();
    const row = (text) => page.locator(".tree details").filter({ has: page.getByText(text, { exact: true }) });
    const press = async (text, button) => {
      await row(text).locator("summary").click();
      await row(text).getByRole("button", { name: button }).click();
    };
    const prompts = () => page.locator(".user-message").allInnerTexts();
    await press("1, 2, 3", "Go on from here");
    await page.locator(".user-message", { hasText: "Count to 4" }).waitFor({ state: "detached" });
    assert.ok((await playground.ask("Count to 5")).includes("1, 2, 3, 4, 5"));
    assert.deepEqual(await prompts(), ["Count to 3", "Count to 5"]);
    await page.locator('.tree li[data-current="no"]', { hasText: "Count to 4" }).waitFor();
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await playground.accessibilityFaults(), []);
      await page.screenshot({ path: join(screenshotFolder, `tree-1280-${colorScheme}.png`) });
    }
    await page.emulateMedia({ colorScheme: "light" });
    await press("1, 2, 3, 4", "Go on from here");
    await page.locator(".user-message", { hasText: "Count to 4" }).waitFor();
    assert.deepEqual(await prompts(), ["Count to 3", "Count to 4"]);
    await press("Count to 3", "Fork here");
    await page.locator(".user-message", { hasText: "Count to 4" }).waitFor({ state: "detached" });
    assert.equal(await page.locator(".tree li").count(), 1);
    await page.getByRole("button", { name: "Change to the other conversation" }).click();
    await page.locator(".user-message", { hasText: "Count to 4" }).waitFor();
    assert.equal(await page.locator(".tree li").count(), 6);
    await page.getByRole("tab", { name: "Connection" }).click();
  });

  await check("a run that a reload interrupts is taken up again", async () => {
    const keep = page.getByLabel("Keep for this browser session");
    await keep.check();
    await playground.newConversation();
    await playground.send("Count to 300");
    await playground.sees("20, 21");
    await page.reload();
    await page.getByRole("button", { name: "Go on" }).click();
    await playground.sees("299, 300");
    await playground.answered();
    await keep.uncheck();
  });
}

async function secrets({ check, playground }) {
  const { page } = playground;
  await check("keys are in memory only, unless the user asks for the browser session", async () => {
    const stored = () => page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }]));
    const key = `key-${random()}`;
    await page.locator("#api-key").fill(key);
    assert.ok(!(await stored()).includes(key));
    const keep = page.getByLabel("Keep for this browser session");
    await keep.check();
    assert.ok((await stored()).includes(key));
    await keep.uncheck();
    assert.ok(!(await stored()).includes(key));
    await page.locator("#api-key").fill("");
  });
}

async function looks({ check, playground, screenshotFolder }) {
  const { page } = playground;
  const widths = [
    [1280, 800],
    [390, 844],
  ];
  await page.locator('.server[data-server="files"][data-state="ready"]').waitFor();
  await page.screenshot({ path: join(screenshotFolder, "welcome-1280.png") });
  await playground.ask("List the folder and read notes/tea.txt");
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const [width, height] of widths) {
      await check(`the page fits ${width} pixels (${scheme})`, async () => {
        await page.setViewportSize({ width, height });
        await page.evaluate(
          () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
        );
        await page.screenshot({ path: join(screenshotFolder, `chat-${width}-${scheme}.png`) });
        const wider = await playground.widerThanThePage(".header, .main, .main *");
        assert.deepEqual(wider, []);
      });
      await check(`the page is accessible at ${width} pixels (${scheme})`, async () =>
        assert.deepEqual(await playground.accessibilityFaults(), []),
      );
    }
  }
  await check("on a phone the connection panel opens over the conversation and closes with Escape", async () => {
    await page.getByRole("button", { name: /scripted-demo/ }).click();
    const close = page.locator(".panel").getByRole("button", { name: "Close" });
    await close.waitFor();
    await page
      .locator(".panel")
      .evaluate((panel) => Promise.all(panel.getAnimations().map((animation) => animation.finished)));
    await page.screenshot({ path: join(screenshotFolder, "panel-390-dark.png") });
    await page.keyboard.press("Escape");
    await close.waitFor({ state: "hidden" });
  });
  await check("the inspector shows where the time went", async () => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.emulateMedia({ colorScheme: "light" });
    await page.getByRole("tab", { name: "Inspector" }).click();
    const spans = await page.locator(".waterfall .span-label").allTextContents();
    assert.deepEqual(spans, ["model", "list_directory", "read_text_file", "model"]);
    const mark = await page.locator('.tree li[aria-current="true"] .tree-mark').boundingBox();
    assert.ok(mark.x + mark.width < 1280, "the mark of the last message is in sight beside its long text");
    await page.getByText(/[\d,]+ tokens in, [\d,]+ out, cost not known/).waitFor();
    await page.screenshot({ path: join(screenshotFolder, "inspector-1280.png") });
    assert.deepEqual(await playground.accessibilityFaults(), []);
    await page.getByRole("tab", { name: "Connection" }).click();
  });
}

async function lostShim({ check, demo, playground, screenshotFolder }) {
  await check("with the shim stopped, the error is seen and no answer", async () => {
    const file = await surprise(demo);
    process.kill(demo.shimPid, "SIGTERM");
    await demo.line(/crablet-shim has ended/);
    const answer = await playground.ask(`Read ${file.name}`);
    assert.ok(!answer.includes(file.content), "nothing can have read the file");
    const failedCard = (await playground.toolCards()).some((card) => card.status === "error");
    assert.ok(failedCard || (await playground.error()) !== undefined, "an error is shown");
    await playground.page.locator('.server[data-server="files"][data-state="failed"]').waitFor();
    await playground.page.screenshot({ path: join(screenshotFolder, "shim-lost-1280.png") });
  });

  await check("the server's row says that it failed, and without it the agent still answers", async () => {
    await playground.server("files").getByRole("button", { name: /again/ }).click();
    await playground.page.locator('.server[data-server="files"][data-state="failed"]').waitFor();
    await playground
      .server("files")
      .getByRole("button", { name: /Remove/ })
      .click();
    assert.ok((await playground.ask("Count to 5")).includes("1, 2, 3, 4, 5"));
  });

  await check("the page made no script error and asked for nothing its policy forbids", () =>
    assert.deepEqual(playground.faults, []),
  );
}

async function endings({ check, demo }) {
  await check("Ctrl-C stops everything", async () => {
    const processes = await demo.processes();
    assert.equal(await demo.stop("SIGINT"), 0);
    await expectGone(processes);
  });

  await check("a demo that is killed leaves no process behind", async () => {
    const other = await Demo.start();
    const processes = await other.processes();
    assert.ok(processes.length >= 2, "the guard and the shim run");
    await other.stop("SIGKILL");
    await expectGone(processes);
  });
}

// The looks come first: the folder is still as a user finds it.
export const suites = [
  looks,
  tools,
  streaming,
  followUps,
  badInput,
  httpServer,
  results,
  prices,
  signingIn,
  providers,
  pairing,
  exposing,
  sessions,
  secrets,
  alone,
  lostShim,
  endings,
];
