// The cases of the area browser-edge that happen in a page, in whichever browser drives it.
import assert from "node:assert/strict";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { startCaseServer } from "./case-server.mjs";
import { serveFolder } from "./servers.mjs";

/** Each of them: what the page is asked, and what is right of what it saw. */
const CASES = {
  "184-abort-listener-leak": async ({ ask, modelUrl, rounds }) => {
    const seen = await ask("184", { modelUrl, rounds });
    assert.equal(seen.calls, rounds);
    assert.ok(seen.added >= rounds, `${seen.added} listeners were added`);
    assert.equal(seen.left, 0, "listeners are left on the signal");
    assert.deepEqual([seen.called, seen.unhandled], [0, []], "what an abort does afterwards");
  },
  "185-consumer-stops-early": async ({ ask, server }) => {
    const stream = server.held("185");
    const seen = await ask("185", { heldUrl: `${server.url}/held/185` });
    await stream.closed;
    assert.deepEqual(seen, { ended: "aborted", status: "idle", unhandled: [] });
  },
  "187-background-timers": async ({ ask, server, tab }) => {
    await tab.exposeFunction("push", (name) => server.held(name).push());
    const inPage = async (name, words, jump) => {
      const stream = server.held(name);
      const seen = await ask("187", { heldUrl: `${server.url}/held/${name}`, name, words, jump });
      assert.ok(seen.waiting <= 2, `${seen.waiting} timers were waiting`);
      assert.equal(seen.ended, "timeout", "silence by the clock");
      assert.equal(seen.left, 0, "timers are left");
      assert.equal(stream.requests.length, 1, "requests after waking");
      return seen;
    };
    // Twenty minutes of a stream in which no timer is called: all of it is read, those that are called late find that there was no
    // silence, and then silence is what the clock says it is.
    const background = await inPage("background", 60, 20_000);
    assert.deepEqual([background.text, background.woken], ["x".repeat(60), true]);
    // A machine that sleeps for ten minutes: what was on its way is read or too late, whichever is seen first.
    await inPage("asleep", 3, 600_000);
  },
  "189-no-stream-upload": async ({ ask, server }) => {
    const bodies = await ask("189", { heldUrl: `${server.url}/held/189` });
    assert.deepEqual(bodies, [{ isStream: false, duplex: "none" }]);
    const [{ headers }] = server.held("189").requests;
    assert.equal(headers["content-type"], "application/json");
    assert.ok(Number(headers["content-length"]) > 0);
    assert.equal(headers["transfer-encoding"], undefined);
  },
  "190-anthropic-cors-header": async ({ ask, server }) => {
    const { allowed, plain } = await ask("190", { anthropicUrl: `${server.url}/anthropic` });
    assert.equal(allowed, "direct");
    assert.match(plain, /^network: .*CORS.*x-api-key/s);
    const [{ wanted }, { headers }] = server.anthropic;
    assert.deepEqual(wanted.sort(), [
      "anthropic-dangerous-direct-browser-access",
      "anthropic-version",
      "content-type",
      "x-api-key",
    ]);
    assert.equal(headers["anthropic-dangerous-direct-browser-access"], "true");
  },
};

/**
 * @param {{ folder: string }} project
 * @param {(use: (page: object) => Promise<unknown>) => Promise<unknown>} withPage
 * @param {{ rounds: number }} options how many runs share one signal in case 184
 * @returns {Record<string, () => Promise<string>>} a row a case
 */
export function browserCases(project, withPage, { rounds }) {
  return Object.fromEntries(
    Object.entries(CASES).map(([name, check]) => [`case ${name}`, () => runCase(project, withPage, check, rounds)]),
  );
}

async function runCase(project, withPage, check, rounds) {
  const [site, server, model] = await Promise.all([
    serveFolder(project.folder),
    startCaseServer(),
    startModelServer({ delay: 0 }),
  ]);
  try {
    await withPage(async (tab) => {
      await tab.goto(`${site.url}/pkg-tests/fixtures/cases/`);
      await tab.waitForFunction(() => window.cases !== undefined);
      const ask = (id, given) => tab.evaluate(([name, options]) => window.cases[name](options), [id, given]);
      await check({ ask, tab, server, rounds, modelUrl: model.url });
    });
  } finally {
    await Promise.all([site.stop(), server.stop(), model.close()]);
  }
  return "as it should be";
}
