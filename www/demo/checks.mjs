// What must hold in the demo, from the user's side. Each suite is a function of the running demo and the open page.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Demo, expectGone } from "./demo-process.mjs";
import { freePort } from "./everything.mjs";
import { providers, signingIn } from "./connection-checks.mjs";
import { httpServer } from "./http-checks.mjs";
import { alone, prices, results } from "./result-checks.mjs";
import { exposing, lostShim, pairing } from "./shim-checks.mjs";
import { random, surprise } from "./surprises.mjs";

/** The most layout shift that streaming may cause; Chromium's own limit for "good" is ten times as much. */
const MAX_LAYOUT_SHIFT = 0.01;

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

  await check("a screen reader is told the answer once it is whole", async () => {
    await playground.ask("Count to 4");
    await page.getByRole("status").filter({ hasText: "The agent is done. 1, 2, 3, 4" }).waitFor({ state: "attached" });
  });

  await check("a message is written in the direction of its language", async () => {
    const direction = () => page.locator("#prompt").evaluate((field) => getComputedStyle(field).direction);
    await page.locator("#prompt").fill("مرحبا");
    assert.equal(await direction(), "rtl");
    await page.locator("#prompt").fill("");
    assert.equal(await direction(), "ltr");
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
    for (const secret of await demo.tokens()) assert.ok(!saved.includes(secret), "no secret is in the file");
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
