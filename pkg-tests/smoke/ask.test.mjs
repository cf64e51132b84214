import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { ask } from "./ask.mjs";
import { expectedAnswer } from "./expected.mjs";

let model;
before(async () => {
  model = await startModelServer({ delay: 0 });
});
after(() => model.close());

test("an agent calls a tool and streams an answer", async () => {
  assert.equal(await ask(model.url), expectedAnswer);
});

test("the package loads with require", () => {
  const { Agent } = createRequire(import.meta.url)("crablet");
  assert.equal(typeof Agent, "function");
});
