// Skills, and tools that the model finds when it needs them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, skill, skillFromUrl, tool } from "crablet";
import { scriptedModel } from "crablet/test";

const anything = { type: "object" };
const call = (toolName, input = {}, callId) => ({ type: "tool-call", toolName, input, ...(callId && { callId }) });

const REVIEW = `---
name: review
description: >
  How code is reviewed here,
  step by step.
license: MIT
---
# Review

Read it twice. See checklist.md.
`;

test("a skill is read of a SKILL.md, told by its description, and its text when it is asked for", async () => {
  const review = skill(REVIEW, { "checklist.md": () => Promise.resolve("1. names") });
  assert.equal(review.description, "How code is reviewed here, step by step.");
  const model = scriptedModel([
    [call("readSkill", { name: "review" }), call("readSkill", { name: "review", file: "checklist.md" })],
    [call("readSkill", { name: "other" }), call("readSkill", { name: "review", file: "constructor" })],
    "done",
  ]);
  await new Agent({ model, instructions: "Be brief.", skills: [review] }).run("go");
  const { instructions, tools } = model.requests[0];
  assert.match(instructions, /^Be brief\.\n\nYou have skills.*\n- review: How code is reviewed here, step by step\.$/s);
  assert.deepEqual(
    tools.map(({ name }) => name),
    ["readSkill"],
  );
  const told = (request) => request.messages.at(-1).content.map(({ content }) => content[0].text);
  assert.deepEqual(told(model.requests[1]), ["# Review\n\nRead it twice. See checklist.md.", "1. names"]);
  assert.match(told(model.requests[2])[0], /no skill "other": they are review/);
  assert.match(told(model.requests[2])[1], /no file "constructor": it has checklist\.md/);
});

test("a skill without front matter is refused", () => {
  assert.throws(() => skill("# Review"), /begins with a line of ---/);
  assert.throws(() => skill("---\nname: x\n---\ntext"), /description/);
});

test("a skill is fetched when it is asked for, once, and again only after it failed", async () => {
  let answers = 0;
  const fetch = async (url) => {
    answers += 1;
    assert.equal(url, "https://skills.test/SKILL.md");
    return answers === 1 ? new Response("gone", { status: 503 }) : new Response(REVIEW);
  };
  const about = { name: "review", description: "How code is reviewed", fetch };
  const read = [call("readSkill", { name: "review" })];
  const model = scriptedModel([read, read, read, "done"]);
  await new Agent({ model, skills: [skillFromUrl("https://skills.test/SKILL.md", about)] }).run("go");
  const told = [1, 2, 3].map((index) => model.requests[index].messages.at(-1).content[0]);
  assert.match(told[0].content[0].text, /503/);
  assert.match(told[1].content[0].text, /^# Review/);
  assert.equal(told[2].content[0].text, told[1].content[0].text);
  assert.equal(answers, 2);
});

test("with discovery the model is told of one tool, and finds the others page by page", async () => {
  const names = ["weatherToday", "weatherTomorrow", "stockPrice"];
  const tools = Object.fromEntries(
    names.map((name) => [
      name,
      tool({ description: `gives ${name}`, input: anything, execute: () => `${name} is fine` }),
    ]),
  );
  const model = scriptedModel([
    [call("findTools", { query: "weather" }), call("stockPrice")],
    (request) => {
      const { nextCursor } = request.messages.at(-1).content[0].output;
      return [call("findTools", { query: "weather", cursor: nextCursor })];
    },
    [call("weatherTomorrow")],
    "done",
  ]);
  const discovery = { toolName: "findTools", pageSize: 1 };
  await new Agent({ model, tools, discovery }).run("go");
  const offered = model.requests.map((request) => request.tools.map(({ name }) => name));
  assert.deepEqual(offered, [
    ["findTools"],
    ["findTools", "weatherToday"],
    ["findTools", "weatherToday", "weatherTomorrow"],
    ["findTools", "weatherToday", "weatherTomorrow"],
  ]);
  assert.equal(model.requests[1].messages.at(-1).content[1].isError, true, "one that was not found cannot be called");
  assert.equal(model.requests[3].messages.at(-1).content[0].content[0].text, "weatherTomorrow is fine");

  const usual = scriptedModel(["done"]);
  await new Agent({ model: usual, tools, discovery: true }).run("go");
  assert.deepEqual(
    usual.requests[0].tools.map(({ name }) => name),
    ["listTools"],
  );
});
