// Histories that are too long, in JavaScript.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, CrabletError } from "crablet";

const long = (words) => "word ".repeat(words);

/** A model that reads at most so many letters. */
function narrow(letters, requests) {
  return async function* ({ messages }) {
    const text = JSON.stringify(messages);
    requests.push(text);
    if (text.includes("Say in short what happened")) {
      yield "The user counts turns.";
      return;
    }
    if (text.length > letters) throw new CrabletError({ kind: "context-overflow", message: "too long" });
    yield "fine";
  };
}

for (const by of ["lines", "model"]) {
  test(`a call that is too long is made again once with less, said in short by ${by}`, async () => {
    const requests = [];
    const session = new Agent({ model: narrow(20_000, requests), compaction: { by } }).session();
    const events = [];
    for (let turn = 0; turn < 12; turn += 1)
      for await (const event of session.send(`turn ${turn} ${long(400)}`)) events.push(event);
    const ends = events.filter(({ type }) => type === "compaction-end");
    assert.ok(ends.length > 0);
    assert.ok(ends[0].tokensAfter < ends[0].tokensBefore);
    const said = ends[0].message.content[0].text;
    assert.match(said, by === "model" ? /The user counts turns/ : /User: turn 1/);
    assert.equal(session.getState().messages.length, 24, "the history is whole");
    assert.ok(requests.at(-1).includes(JSON.stringify(said).slice(1, 60)));
    const restored = new Agent({ model: narrow(20_000, requests) }).session(JSON.parse(JSON.stringify(session)));
    await restored.send("and now?").result;
    assert.ok(requests.at(-1).length < 20_000, "a restored session sends the same");
  });
}
