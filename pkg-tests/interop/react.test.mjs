// crablet/react with the real React, in strict mode, in Chromium.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inPage } from "./browser.mjs";

/** What each scenario of react-page.mjs gives. React complains of nothing in any of them. */
const EXPECTED = {
  "streams an answer": { running: "running", isStable: true },
  "asks for approvals": { asked: ["a", "b"], ran: [1], last: "done" },
  "performs client-side tools once, and those of a saved session": {
    text: '{"city":"Oslo"},no GPS here',
    performed: [
      ["a", {}, false],
      ["b", { fails: true }, false],
      ["c", { again: true }, false],
    ],
    restored: '{"city":"Oslo"}',
  },
  "goes on with a saved approval": { status: "interrupted", last: "done" },
  "stops, and aborts when the component goes": { aborted: [true, true] },
  "another agent begins another conversation, and two components share a session": {},
  "goes on when it is shown again after it was hidden": { isMadeAgain: true },
  "renders on a server and is hydrated": { html: "<output>idle user:hi|assistant:hello</output>" },
};

test("React", async (context) => {
  await inPage(
    () => undefined,
    async (page) => {
      const names = await page.evaluate(() => Object.keys(window.react.scenarios));
      assert.deepEqual(names, Object.keys(EXPECTED));
      for (const [name, expected] of Object.entries(EXPECTED)) {
        await context.test(name, async () => {
          const seen = await page.evaluate((scenario) => window.react.scenarios[scenario](), name);
          assert.deepEqual(seen, { ...expected, complaints: [] });
        });
      }
    },
  );
});
