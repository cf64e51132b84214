import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { init } from "crablet/slim";
import { startModelServer } from "../../www/demo/model-server.mjs";
import { ask } from "./ask.mjs";
import { askSlim } from "./ask-slim.mjs";
import { expectedAnswer } from "./expected.mjs";

let model;
before(async () => {
  model = await startModelServer({ delay: 0 });
});
after(() => model.close());

test("an agent calls a tool and streams an answer", async () => {
  assert.equal(await ask(model.url), expectedAnswer);
});

test("the entry without the module takes its bytes", async () => {
  await init(readFile(fileURLToPath(import.meta.resolve("crablet/wasm"))));
  assert.equal(await askSlim(model.url), expectedAnswer);
});

test("the package loads with require", () => {
  const { Agent } = createRequire(import.meta.url)("crablet");
  assert.equal(typeof Agent, "function");
});
