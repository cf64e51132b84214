// What must hold with crablet-shim beside the page: pairing by a code, its tools for agents of this machine, a shim that is gone.
// Suites of checks.mjs.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { askAsAgent } from "./local-agent.mjs";
import { sampleServer, setUp } from "./setup.mjs";
import { startShim } from "./shim.mjs";
import { surprise } from "./surprises.mjs";

export async function pairing({ check, demo, playground, screenshotFolder }) {
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
      const [{ url }] = await demo.servers();
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

export async function exposing({ check, demo, playground, screenshotFolder }) {
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

export async function lostShim({ check, demo, playground, screenshotFolder }) {
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
