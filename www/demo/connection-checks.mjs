// What must hold where a person says which model answers, and signs in to a tool server. Suites of checks.mjs.
import assert from "node:assert/strict";
import { join } from "node:path";
import { startOAuthServers } from "../../pkg-tests/lib/oauth-servers.mjs";

/** A server that wants a token, and the window of its authorization server, where a person agrees. */
export async function signingIn({ check, playground, screenshotFolder }) {
  const { page } = playground;
  // The second one is closed off from whoever opened it, as careful authorization servers are.
  for (const isolated of [false, true]) {
    const servers = await startOAuthServers({ page: true, isolated });
    const row = playground.server("members");
    try {
      await check(
        `a person signs in to a server in a window of its own${isolated ? ", which the page cannot look into" : ""}`,
        async () => {
          // The person is at the window. Without a screen, every page believes that it has the focus.
          if (isolated) await page.evaluate(() => Object.assign(document, { hasFocus: () => false }));
          await page.getByRole("button", { name: "Add", exact: true }).click();
          await page.getByLabel("Name", { exact: true }).fill("members");
          await page.getByRole("textbox", { name: "Address" }).fill(servers.url);
          const [window] = await Promise.all([
            page.context().waitForEvent("page"),
            page.getByRole("button", { name: "Connect", exact: true }).click(),
          ]);
          if (!isolated) {
            // Who closes the window is not signed in, is told so, and can ask for it again.
            await window.close();
            await row.getByRole("alert").filter({ hasText: "You are not signed in" }).waitFor();
            assert.deepEqual(await playground.accessibilityFaults(), []);
            await page.screenshot({ path: join(screenshotFolder, "sign-in-1280.png") });
            const [again] = await Promise.all([
              page.context().waitForEvent("page"),
              row.getByRole("button", { name: "Sign in to members" }).click(),
            ]);
            await again.click("#allow");
          } else {
            await window.click("#allow");
          }
          await page.locator('.server[data-server="members"][data-state="ready"]').waitFor();
          await page.evaluate(() => Reflect.deleteProperty(document, "hasFocus"));
        },
      );

      await check("who has signed in once is not asked again, and no token is kept or shown", async () => {
        const asked = servers.seen.authorizations.length;
        await row.getByText("1 tool", { exact: true }).click();
        await row.locator(".offer summary").click();
        await row.getByRole("button", { name: "Call it" }).click();
        await row.getByText("a person who agreed").waitFor();
        assert.equal(servers.seen.authorizations.length, asked);
        const shown = await page.evaluate(() =>
          JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.documentElement.outerHTML]),
        );
        for (const secret of servers.seen.secrets) assert.ok(!shown.includes(secret));
      });
    } finally {
      for (const button of await row.getByRole("button", { name: /Remove/ }).all()) await button.click();
      await servers.stop();
    }
  }
}

export async function providers({ check, playground }) {
  const { page } = playground;
  await check("each provider says what it needs, and the way back loses nothing", async () => {
    const choice = page.getByLabel("Who answers");
    const before = await choice.inputValue();
    const address = await page.locator("#base-url").inputValue();
    for (const [provider, label] of [
      ["vertex", "Project"],
      ["azure", "Resource"],
      ["bedrock", "Region"],
    ]) {
      await choice.selectOption(provider);
      await page.getByLabel(label).waitFor();
      assert.deepEqual(await playground.accessibilityFaults(), []);
    }
    await choice.selectOption("gemini");
    assert.match(await page.locator("#model").inputValue(), /^gemini-/);
    await choice.selectOption(before);
    assert.equal(await page.locator("#base-url").inputValue(), address);
  });
}
