import assert from "node:assert/strict";
import { test } from "node:test";
import { decide, planCalls } from "./scripted-model.mjs";

const path = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
const tools = [
  { name: "read_file", description: "Read a file as text. DEPRECATED: Use read_text_file instead.", parameters: path },
  { name: "files__read_text_file", description: "Read the complete contents of a file as text.", parameters: path },
  {
    name: "read_multiple_files",
    description: "Read several files.",
    parameters: {
      type: "object",
      properties: { paths: { type: "array", items: { type: "string" } } },
      required: ["paths"],
    },
  },
  {
    name: "write_file",
    description: "Create a new file.",
    parameters: {
      type: "object",
      properties: { path: { type: "string" }, content: { type: "string" } },
      required: ["path", "content"],
    },
  },
  { name: "list_directory", description: "Get a listing of a directory.", parameters: path },
  {
    name: "list_directory_with_sizes",
    description: "Get a listing of a directory, including sizes.",
    parameters: path,
  },
  {
    name: "search_files",
    description: "Search for files.",
    parameters: {
      type: "object",
      properties: { path: { type: "string" }, pattern: { type: "string" } },
      required: ["path", "pattern"],
    },
  },
  {
    name: "list_allowed_directories",
    description: "The directories that may be read.",
    parameters: { type: "object", properties: {} },
  },
  {
    name: "get-sum",
    description: "Returns the sum of two numbers",
    parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  },
  {
    name: "everything__echo",
    description: "Echoes back the input",
    parameters: { type: "object", properties: { message: { type: "string" } }, required: ["message"] },
  },
];

const planned = (prompt) => planCalls(prompt, tools).map((call) => [call.name, JSON.parse(call.arguments)]);

const cases = [
  ["Read welcome.md", [["files__read_text_file", { path: "welcome.md" }]]],
  ["What does notes/tea.txt say?", [["files__read_text_file", { path: "notes/tea.txt" }]]],
  [
    "read a.txt and b.txt",
    [
      ["files__read_text_file", { path: "a.txt" }],
      ["files__read_text_file", { path: "b.txt" }],
    ],
  ],
  [
    "read a.txt, b.txt and c.txt",
    [
      ["files__read_text_file", { path: "a.txt" }],
      ["files__read_text_file", { path: "b.txt" }],
      ["files__read_text_file", { path: "c.txt" }],
    ],
  ],
  [
    "List the folder and read x-7f3a.md",
    [
      ["list_directory", { path: "." }],
      ["files__read_text_file", { path: "x-7f3a.md" }],
    ],
  ],
  ["Please list the folder notes/", [["list_directory", { path: "notes/" }]]],
  ['write "one, two and three" to out.txt', [["write_file", { path: "out.txt", content: "one, two and three" }]]],
  ["add 2 and 3.5", [["get-sum", { a: 2, b: 3.5 }]]],
  ["echo hello world", [["everything__echo", { message: "hello world" }]]],
  ['search the folder for "*.md"', [["search_files", { path: ".", pattern: "*.md" }]]],
  ["Which allowed directories are there?", [["list_allowed_directories", {}]]],
  ["What files are there?", [["list_directory", { path: "." }]]],
  ["Read ./notes/tea.txt.", [["files__read_text_file", { path: "./notes/tea.txt" }]]],
  ["Tell me a joke about bears", []],
];

for (const [prompt, expected] of cases) {
  test(`plans ${JSON.stringify(prompt)}`, () => assert.deepEqual(planned(prompt), expected));
}

test("answers with the content of the results, however many backticks it has", () => {
  const { text, calls } = decide({
    tools,
    messages: [
      { role: "user", content: [{ type: "text", text: "read a.txt" }] },
      {
        role: "assistant",
        tool_calls: [{ id: "c1", type: "function", function: { name: "read_file", arguments: '{"path":"a.txt"}' } }],
      },
      { role: "tool", tool_call_id: "c1", content: "secret ``` 4711\n" },
    ],
  });
  assert.deepEqual(calls, []);
  assert.match(text, /````text\nsecret ``` 4711\n````/);
});

test("a new prompt after results is worked on afresh", () => {
  const { calls } = decide({
    tools,
    messages: [
      { role: "user", content: "read a.txt" },
      {
        role: "assistant",
        tool_calls: [{ id: "c1", type: "function", function: { name: "read_file", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "c1", content: "x" },
      { role: "assistant", content: "x" },
      { role: "user", content: "read b.txt" },
    ],
  });
  assert.deepEqual(
    calls.map((call) => call.arguments),
    ['{"path":"b.txt"}'],
  );
});

test("says what it is when nothing matches", () => {
  assert.match(decide({ messages: [{ role: "user", content: "hello" }] }).text, /scripted/);
});
