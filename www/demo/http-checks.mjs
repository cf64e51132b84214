// What must hold with an MCP server over Streamable HTTP: its tools, resources and prompts, its questions, and what the
// inspector shows of it. A suite of checks.mjs.
import assert from "node:assert/strict";
import { join } from "node:path";
import { startEverything } from "./everything.mjs";
import { random } from "./surprises.mjs";

export async function httpServer({ check, playground, screenshotFolder }) {
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
        // The whole arguments are in sight.
        await page.locator(".tool-card[open] .scrollable", { hasText: word }).waitFor();
        await page.getByRole("button", { name: "Deny" }).click();
        assert.equal(await page.evaluate(() => document.activeElement?.id), "prompt");
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
