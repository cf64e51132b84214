// Restores each session of the folders that it is given, as files of saved texts, and lets what was open go on: `node restore.mjs
// FOLDER...`. Prints the names of those that went on to their end, and fails where one does not.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Agent, tool } from "crablet";

const anything = { type: "object" };

/** A tool of any name that a saved session may have called. */
const known = (needsApproval = false) =>
  tool({ description: "t", input: anything, needsApproval, execute: () => "done" });
const tools = {
  a: known(),
  b: known(true),
  pay: known(true),
  weather: known(),
  detailed: known(),
  failing: known(),
  client: tool({ description: "t", input: anything }),
};

async function* model() {
  yield "the end";
}

for (const folder of process.argv.slice(2)) {
  for (const name of await readdir(folder)) {
    const text = await readFile(join(folder, name), "utf8");
    const session = new Agent({ model, tools }).session(saved(text));
    const before = session.getState();
    assert.ok(before.messages.length > 0, `${name} has no messages`);
    const isOpen = before.pending.length + before.clientCalls.length > 0;
    for (const { callId } of before.clientCalls) session.toolResult(callId, "done");
    for (const { callId } of before.pending) session.approve(callId, true);
    const result = await (isOpen ? session.resume() : session.send("go on")).result;
    assert.equal(result.stopReason, "stop", name);
    assert.equal(result.text, "the end", name);
    const { messages } = session.getState();
    assert.deepEqual(messages.slice(0, before.messages.length), before.messages, `${name}: its history is another`);
    console.log(name);
  }
}

/** The files of this folder have the members around the snapshot in a line of its own; those of the crate are the snapshot. */
function saved(text) {
  const [first, ...rest] = text.split("\n");
  const header = JSON.parse(first);
  return header.format === undefined ? { ...header, snapshot: rest.join("\n") } : { version: 1, snapshot: text };
}
