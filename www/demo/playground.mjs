// The page, as a person uses it: what can be typed and pressed, and what can be seen.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

/** The longest that anything is waited for that no model call with retries stands before, in milliseconds. */
const ACTION_LIMIT = 15_000;

export class Playground {
  /** What the page did that it must not: script errors, and things its content security policy forbade. */
  faults = [];

  static async open(browser, address) {
    const playground = new Playground();
    const page = browser.pages()[0] ?? (await browser.newPage());
    playground.page = page;
    page.setDefaultTimeout(ACTION_LIMIT);
    page.on("pageerror", (error) => playground.faults.push(`page error: ${error.message}`));
    page.on("console", (message) => {
      const text = message.text();
      // Chromium tells failed requests on the console too; the page shows those itself.
      if (
        message.type() === "error" &&
        !text.startsWith("Failed to load resource") &&
        !/^WebSocket connection to/.test(text)
      )
        playground.faults.push(`console: ${text}`);
    });
    await page.addInitScript(() => {
      globalThis.layoutShift = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) globalThis.layoutShift += entry.value;
      }).observe({ type: "layout-shift", buffered: true });
    });
    await page.goto(address);
    await page.locator("#prompt").waitFor();
    return playground;
  }

  /** Sends a prompt and waits until the agent is done. Gives the text of what came after it. */
  async ask(prompt) {
    await this.send(prompt);
    return await this.answered();
  }

  /** Sends a prompt. */
  async send(prompt) {
    await this.page.locator("#prompt").fill(prompt);
    await this.page.locator("#prompt").press("Enter");
    await this.page.locator(".user-message", { hasText: prompt }).last().waitFor();
  }

  /** Waits until the answer to the last prompt holds this text. */
  async sees(text) {
    await this.#afterLastPrompt().filter({ hasText: text }).first().waitFor();
  }

  /** Waits until nothing runs any more, and gives the text that answers the last prompt. */
  async answered() {
    await this.page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached", timeout: 50_000 });
    await this.page.evaluate(
      () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
    );
    return (
      await this.#afterLastPrompt()
        .filter({ has: this.page.locator(".markdown") })
        .allInnerTexts()
    ).join("\n");
  }

  /** The tool cards after the last prompt: name, status, and when they ran. */
  async toolCards() {
    return await this.#afterLastPrompt()
      .locator(".tool-card")
      .evaluateAll((cards) =>
        cards.map(({ dataset, textContent }) => ({
          name: dataset.tool,
          status: dataset.status,
          started: Number(dataset.started),
          ended: Number(dataset.ended),
          text: textContent,
        })),
      );
  }

  /** The error after the last prompt: its kind and its words, or `undefined`. */
  async error() {
    const cards = await this.#afterLastPrompt()
      .locator(".error-card")
      .evaluateAll((found) => found.map(({ dataset, textContent }) => ({ kind: dataset.error, text: textContent })));
    return cards.at(-1);
  }

  /** The retry notices after the last prompt. */
  async notices() {
    return await this.#afterLastPrompt().locator(".notice").allInnerTexts();
  }

  /** Chooses another model or address. */
  async configure({ model, baseUrl }) {
    if (model !== undefined) await this.page.locator("#model").fill(model);
    if (baseUrl !== undefined) await this.page.locator("#base-url").fill(baseUrl);
  }

  /** A server's row in the panel. */
  server(name) {
    return this.page.locator(`.server[data-server="${name}"]`);
  }

  /** Begins a new conversation, if there is one to leave. */
  async newConversation() {
    const button = this.page.getByRole("button", { name: "New conversation" });
    if (await button.isEnabled()) await button.click();
    await this.page.locator(".welcome").waitFor();
  }

  /** What axe-core finds serious: rule, and where. */
  async accessibilityFaults() {
    await this.page.evaluate(await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
    const { violations } = await this.page.evaluate(() => globalThis.axe.run());
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`);
  }

  /** The elements that stand out of the page to the right, and do not scroll. */
  async widerThanThePage(selector) {
    return await this.page.evaluate(
      (wanted) =>
        [...document.querySelectorAll(wanted)]
          .filter(
            (element) =>
              element.getBoundingClientRect().right > innerWidth + 1 &&
              !element.closest("pre, .table-scroll, .visually-hidden"),
          )
          .map((element) => element.className || element.tagName),
      selector,
    );
  }

  #afterLastPrompt() {
    return this.page.locator('.entry[data-kind="user"]').last().locator("xpath=following-sibling::li");
  }
}
