// A page in Chromium that talks over NATS's WebSocket to an agent whose workers are processes of their own: it sends input, shows
// the events in their order, steers, is loaded anew in the middle of a run and reads on where it was, and aborts.
import { join } from "node:path";
import { Agent } from "crablet";
import { bare, clientOf, connected, same, within } from "./clients.mjs";

const SESSION = "of a page";

export async function page({ startNats, startWorker, ledgerOf, servePage, withPage, project }) {
  const server = await startNats();
  const options = { url: server.url, name: "paged", ledger: ledgerOf(), toolMs: 400 };
  const workers = await Promise.all([startWorker(options), startWorker(options)]);
  const nats = await connected(server.url);
  const site = await servePage(join(project.tests, "agent-service/page"));
  try {
    const { shown, before, messages } = await withPage(async (tab) => {
      const open = async () => {
        await tab.goto(site.url);
        await tab.waitForFunction(() => window.talk !== undefined);
        return await tab.evaluate((place) => window.talk.open(...place), [server.webSocketUrl, "paged", SESSION]);
      };
      const ask = (verb, text) => tab.evaluate(([name, given]) => window.talk[name](given), [verb, text]);
      const showsOf = (type, count) =>
        tab.waitForFunction(
          ([of, least]) => document.querySelectorAll(`li[data-type="${of}"]`).length >= least,
          [type, count],
        );

      same(await open(), 0, "the events that a new page knows");
      await ask("prompt", "4 steps");
      await showsOf("tool-result", 1);
      await ask("steer", "Faster.");
      await showsOf("steer-delivered", 1);
      // In the middle of the run.
      const before = await open();
      await showsOf("run-end", 1);
      await ask("prompt", "9 steps");
      await showsOf("tool-result", 10);
      await ask("abort", "enough");
      await showsOf("run-end", 2);
      const shown = await tab
        .locator("li")
        .evaluateAll((lines) => lines.map(({ textContent }) => JSON.parse(textContent)));
      return { shown, before, messages: await ask("messages") };
    });
    const ends = shown.filter(({ event }) => event.type === "run-end");
    same(ends[0].event.text, "4 payments, 0 of unknown end, 1 steered", "the answer of the steered run");
    same(ends[1].event.stopReason, "aborted", "the end of the aborted run");
    const place = shown.indexOf(ends[0]);
    if (before === 0 || before > place)
      throw new Error(`the page was loaded anew after ${before} events, and not within a run`);
    const { client, store } = clientOf(nats, "paged");
    same(
      shown,
      await within(20_000, "the events", eventsOf(client.session(SESSION))),
      "the events that the page showed, beside all that there are",
    );
    const session = await new Agent({ model: async function* () {} }).open(SESSION, store);
    same(bare(messages), bare(session.getState().messages), "the messages of the page, beside those that are stored");
    return `a page in Chromium over WebSocket: ${shown.length} events in their order, loaded anew after ${before}; steered and aborted`;
  } finally {
    await site.stop();
    await nats.connection.close();
    await Promise.all(workers.map((worker) => worker.kill()));
    await server.stop();
  }
}

/** All events up to the end of the second run. */
async function eventsOf(session) {
  const all = [];
  for await (const placed of session.events()) {
    all.push(placed);
    if (all.filter(({ event }) => event.type === "run-end").length === 2) break;
  }
  return all;
}
