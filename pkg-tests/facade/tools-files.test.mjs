// The file tools over a store in memory and over a folder: what a model asks for, and what a hostile one asks for.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { lstat, mkdir, mkdtemp, readFile, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Agent } from "crablet";
import { scriptedModel } from "crablet/test";
import { fileTools, folderFiles, MemoryFiles, readingTools } from "crablet/tools";

const context = () => ({ callId: "call", signal: new AbortController().signal, progress() {} });
const call = (tool, input) => tool.execute(input, context());

/** Runs a check over each kind of store that this platform has, with the same files in it. */
function overStores(name, files, check) {
  test(`${name}, in memory`, async () => {
    const store = new MemoryFiles(files);
    const content = async (path) => new TextDecoder().decode(store.files().get(path));
    await check(fileTools(store), { store, content });
  });
  test(`${name}, in a folder`, async (t) => {
    const folder = await temporaryFolder(t);
    for (const [path, text] of Object.entries(files)) {
      await mkdir(join(folder, path, ".."), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    const store = folderFiles(folder);
    await check(fileTools(store), { store, content: (path) => readFile(join(folder, path), "utf8") });
  });
}

async function temporaryFolder(t) {
  const folder = await mkdtemp(join(tmpdir(), "crablet-files-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const HOSTILE = [
  "../secret",
  "a/../../secret",
  "a/..",
  "/etc/passwd",
  "//etc/passwd",
  "..",
  "..\\secret",
  "C:\\secret",
  "C:/secret",
  "a\0b",
  "a\nb",
  `${"x/".repeat(600)}y`,
];

overStores("no path leads out", { "a/b.txt": "inside" }, async (tools) => {
  for (const path of HOSTILE) {
    await assert.rejects(call(tools.readFile, { path }), /path/, `readFile ${path}`);
    await assert.rejects(call(tools.writeFile, { path, content: "x" }), /path/, `writeFile ${path}`);
    await assert.rejects(call(tools.editFile, { path, oldText: "a", newText: "b" }), /path/, `editFile ${path}`);
    await assert.rejects(call(tools.listFiles, { path }), /path/, `listFiles ${path}`);
    await assert.rejects(call(tools.searchFiles, { path, text: "root" }), /path/, `searchFiles ${path}`);
  }
  assert.equal(await call(tools.readFile, { path: "./a//b.txt" }), "inside");
});

overStores("reading gives lines", { "ten.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", empty: "" }, async (tools) => {
  assert.equal(await call(tools.readFile, { path: "ten.txt" }), "1\n2\n3\n4\n5\n6\n7\n8\n9\n10");
  assert.equal(
    await call(tools.readFile, { path: "ten.txt", from: 3, lines: 2 }),
    '3\n4\n[lines 3 to 4 of 10; read on with "from": 5]',
  );
  assert.equal(await call(tools.readFile, { path: "ten.txt", from: 9 }), "9\n10\n[lines 9 to 10 of 10]");
  assert.equal(await call(tools.readFile, { path: "empty" }), "[empty is empty]");
  await assert.rejects(call(tools.readFile, { path: "ten.txt", from: 11 }), /has 10 lines, and line 11 is beyond/);
  await assert.rejects(call(tools.readFile, { path: "two.txt" }), /no two\.txt; the root has .*ten\.txt/);
  await assert.rejects(call(tools.readFile, { path: "" }), /the root is a folder: list it with listFiles/);
});

overStores(
  "an edit needs exactly one place",
  { "a.txt": "one\ntwo\none\n", "dos.txt": "a\r\nb\r\n" },
  async (tools, at) => {
    await assert.rejects(
      call(tools.editFile, { path: "a.txt", oldText: "one", newText: "1" }),
      /occurs 2 times in a\.txt, at the lines 1, 3/,
    );
    await assert.rejects(call(tools.editFile, { path: "a.txt", oldText: "four", newText: "4" }), /Read the file again/);
    await assert.rejects(
      call(tools.editFile, { path: "a.txt", oldText: "two\nthree", newText: "4" }),
      /first line is at line 2/,
    );
    await assert.rejects(call(tools.editFile, { path: "a.txt", oldText: "", newText: "4" }), /oldText is empty/);
    await assert.rejects(
      call(tools.editFile, { path: "a.txt", oldText: "two", newText: "two" }),
      /nothing would change/,
    );
    assert.equal(await at.content("a.txt"), "one\ntwo\none\n", "no failed edit changed anything");
    await call(tools.editFile, { path: "a.txt", oldText: "two\n", newText: "$& $1\n" });
    assert.equal(await at.content("a.txt"), "one\n$& $1\none\n", "the new text is taken as it is");
    await call(tools.editFile, { path: "a.txt", oldText: "one", newText: "1", all: true });
    assert.equal(await at.content("a.txt"), "1\n$& $1\n1\n");
    await call(tools.editFile, { path: "dos.txt", oldText: "a\nb\n", newText: "c\nd\n" });
    assert.equal(await at.content("dos.txt"), "c\r\nd\r\n", "the file keeps its line ends");
  },
);

overStores("two edits at once both happen", { "a.txt": "one two" }, async (tools, at) => {
  await Promise.all([
    call(tools.editFile, { path: "a.txt", oldText: "one", newText: "1" }),
    call(fileTools(at.store).editFile, { path: "a.txt", oldText: "two", newText: "2" }),
  ]);
  assert.equal(await at.content("a.txt"), "1 2");
});

overStores("writing makes folders and keeps out of the way of others", { "a/b.txt": "old" }, async (tools, at) => {
  assert.match(await call(tools.writeFile, { path: "new/deep/file.txt", content: "hé" }), /3 bytes/);
  assert.equal(await at.content("new/deep/file.txt"), "hé");
  await assert.rejects(call(tools.writeFile, { path: "a", content: "x" }), /folder|not a file/);
  await assert.rejects(call(tools.writeFile, { path: "a/b.txt/c", content: "x" }), /is a file/);
  await assert.rejects(call(tools.writeFile, { path: "", content: "x" }), /needs a name/);
  assert.equal(await at.content("a/b.txt"), "old");
});

const TREE = {
  "readme.md": "# Hello\n",
  "src/main.ts": "const answer = 42;\nlet other;\n",
  "src/deep/part.js": "answer();\n",
  "node_modules/big/index.js": "answer",
  "picture.png": "\x89PNG\0answer",
};

overStores("listing", TREE, async (tools) => {
  assert.equal(
    await call(tools.listFiles, {}),
    "node_modules/\npicture.png 12\nreadme.md 8\nsrc/".replace("12", String(Buffer.byteLength(TREE["picture.png"]))),
  );
  assert.equal(await call(tools.listFiles, { path: "src" }), "src/deep/\nsrc/main.ts 30");
  assert.equal(
    await call(tools.listFiles, { path: "src", recursive: true }),
    "src/deep/\nsrc/deep/part.js 10\nsrc/main.ts 30",
  );
  assert.equal(await call(tools.listFiles, { glob: "*.{js,ts}" }), "src/deep/part.js 10\nsrc/main.ts 30");
  assert.equal(await call(tools.listFiles, { glob: "src/*.ts" }), "src/main.ts 30");
  assert.equal(await call(tools.listFiles, { glob: "*.py" }), '[no file fits "*.py"]');
  await assert.rejects(call(tools.listFiles, { path: "none" }), /there is no none; the root has/);
  await assert.rejects(call(tools.listFiles, { path: "readme.md" }), /is a file, not a folder/);
});

overStores("searching", TREE, async (tools) => {
  assert.equal(
    await call(tools.searchFiles, { text: "answer" }),
    "src/deep/part.js:1: answer();\nsrc/main.ts:1: const answer = 42;\n" +
      "[1 files were not searched: they are no text, too large or not readable]",
  );
  assert.equal(
    await call(tools.searchFiles, { text: "^(const|let)\\s+\\w+;?", regex: true, glob: "*.ts" }),
    "src/main.ts:1: const answer = 42;\nsrc/main.ts:2: let other;",
  );
  assert.equal(
    await call(tools.searchFiles, { text: "HELLO", ignoreCase: true, path: "readme.md" }),
    "readme.md:1: # Hello",
  );
  assert.match(await call(tools.searchFiles, { text: "absent", glob: "*.ts" }), /^\[nothing found\]$/);
  await assert.rejects(call(tools.searchFiles, { text: "(a", regex: true }), /not a regular expression.*no "\)"/);
  await assert.rejects(call(tools.searchFiles, { text: "(?=a)", regex: true }), /lookaround/);
  await assert.rejects(call(tools.searchFiles, { text: "" }), /text is empty/);
});

test("a pattern that would take for ever ends", async () => {
  const tools = fileTools(new MemoryFiles({ "a.txt": `${"a".repeat(50_000)}b\n` }));
  assert.match(await call(tools.searchFiles, { text: "^(a+)+$", regex: true }), /nothing found/);
  const heavy = await call(tools.searchFiles, { text: "(a?){300}(a{1,200}){1,2}c", regex: true });
  assert.match(heavy, /more than one search can go through|nothing found/);
  await assert.rejects(call(tools.searchFiles, { text: "((a{99}){99}){99}", regex: true }), /too large/);
});

test("regular expressions agree with those of the platform", async () => {
  const patterns = [
    "a|b|",
    "^a*$",
    "a{2,3}b",
    "[^abc]",
    "\\bfoo\\b",
    "(ab)+c?",
    "[\\w.-]+@\\w+\\.com",
    "\\u{1F600}|é",
    "x*?y",
    "^$",
    "(?:a|ab)(?:c|bcd)$",
    "[a-c\\]]{2}",
    "\\x41",
    ".",
  ];
  const texts = [
    "",
    "a",
    "aab",
    "aaab",
    "abc",
    "xyz",
    "foo bar",
    "foobar",
    "me@site.com",
    "😀",
    "café",
    "ab]",
    "A",
    "abcd",
    "xxy",
  ];
  for (const pattern of patterns) {
    for (const text of texts) {
      const tools = readingTools(new MemoryFiles({ f: `${text}\n` }));
      const found = !(await call(tools.searchFiles, { text: pattern, regex: true })).startsWith("[nothing");
      assert.equal(found, new RegExp(pattern, "u").test(text), `/${pattern}/ on ${JSON.stringify(text)}`);
    }
  }
});

test("what is large is cut, or refused with what to do", async () => {
  const store = new MemoryFiles({
    "long.txt": "line\n".repeat(1_000),
    "one.txt": "x".repeat(5_000),
    "many/a": "1",
    "many/b": "1",
  });
  const tools = fileTools(store, { limits: { maxReadCharacters: 100, maxResults: 3, maxFileBytes: 6_000 } });
  assert.match(await call(tools.readFile, { path: "long.txt" }), /\[lines 1 to 20 of 1000; read on with "from": 21\]$/);
  assert.match(
    await call(tools.readFile, { path: "one.txt" }),
    /^x{100}\n\[line 1 has 5000 characters and is cut\.\]$/,
  );
  assert.match(await call(tools.searchFiles, { text: "line" }), /:3: line\n\[more than 3 places: narrow the search\]$/);
  assert.match(await call(tools.listFiles, { recursive: true }), /\[more than 3 entries/);
  await assert.rejects(
    call(tools.writeFile, { path: "b", content: "x".repeat(6_001) }),
    /6001 bytes, and a file may have 6000/,
  );
  const narrow = fileTools(store, { limits: { maxFileBytes: 10, maxEntries: 2 } });
  await assert.rejects(call(narrow.readFile, { path: "long.txt" }), /5000 bytes, and at most 10/);
  assert.match(await call(narrow.listFiles, { recursive: true }), /only the first 2 entries were looked at/);
});

test("a file that is no text is named as such", async () => {
  const tools = readingTools(new MemoryFiles({ zero: "a\0b", broken: new Uint8Array([0xff, 0xfe, 0x41]) }));
  await assert.rejects(call(tools.readFile, { path: "zero" }), /not a text file \(3 bytes/);
  await assert.rejects(call(tools.readFile, { path: "broken" }), /not a text file/);
});

test("a folder's links, pipes and huge files", async (t) => {
  const outside = await temporaryFolder(t);
  const folder = await temporaryFolder(t);
  await writeFile(join(outside, "secret.txt"), "secret");
  await mkdir(join(folder, "sub"));
  await symlink(join(outside, "secret.txt"), join(folder, "link.txt"));
  await symlink(outside, join(folder, "linked"));
  await symlink(outside, join(folder, "sub/linked"));
  execFileSync("mkfifo", [join(folder, "pipe")]);
  await writeFile(join(folder, "huge.bin"), "");
  await truncate(join(folder, "huge.bin"), 8 * 1024 ** 3);
  const tools = fileTools(folderFiles(folder));

  for (const path of ["link.txt", "linked/secret.txt", "sub/linked/secret.txt"]) {
    await assert.rejects(call(tools.readFile, { path }), /is a symbolic link, and links are not followed/, path);
    await assert.rejects(call(tools.writeFile, { path, content: "x" }), /is a symbolic link/, path);
    await assert.rejects(call(tools.editFile, { path, oldText: "secret", newText: "x" }), /is a symbolic link/, path);
  }
  await assert.rejects(call(tools.writeFile, { path: "linked/new.txt", content: "x" }), /is a symbolic link/);
  await assert.rejects(call(tools.listFiles, { path: "linked" }), /is a symbolic link/);
  await assert.rejects(call(tools.readFile, { path: "pipe" }), /neither a file nor a folder/);
  await assert.rejects(call(tools.readFile, { path: "huge.bin" }), /at most 10485760 are read/);
  const listed = await call(tools.listFiles, { recursive: true });
  assert.match(listed, /^link\.txt \(neither file nor folder\)$/m);
  assert.match(listed, /^linked \(neither file nor folder\)$/m);
  assert.ok(!listed.includes("secret"), listed);
  assert.ok(!(await call(tools.searchFiles, { text: "secret" })).includes("secret.txt"));
  assert.equal(await readFile(join(outside, "secret.txt"), "utf8"), "secret");
  assert.ok((await lstat(join(folder, "link.txt"))).isSymbolicLink());
});

test("no error names the folder's own path", async (t) => {
  const folder = await temporaryFolder(t);
  await writeFile(join(folder, "file"), "x");
  const tools = fileTools(folderFiles(folder));
  const name = "n".repeat(300);
  for (const asked of [
    () => call(tools.readFile, { path: name }),
    () => call(tools.writeFile, { path: name, content: "x" }),
    () => call(tools.readFile, { path: "file/below" }),
    () => call(fileTools(folderFiles(join(folder, "none"))).listFiles, {}),
  ]) {
    const error = await asked().then(
      () => assert.fail("it must fail"),
      (thrown) => thrown,
    );
    assert.ok(!error.message.includes(folder), error.message);
  }
});

test("a written file keeps its mode, and no draft is left", async (t) => {
  const folder = await temporaryFolder(t);
  await writeFile(join(folder, "run.sh"), "old", { mode: 0o755 });
  const tools = fileTools(folderFiles(folder));
  await call(tools.writeFile, { path: "run.sh", content: "new" });
  assert.equal((await lstat(join(folder, "run.sh"))).mode & 0o777, 0o755);
  assert.equal(await call(tools.listFiles, {}), "run.sh 3");
});

test("in an agent: changing asks a person, looking does not", async () => {
  const store = new MemoryFiles({ "a.txt": "hello" });
  const ask = (toolName, input) => ({ type: "tool-call", toolName, input });
  const asked = [];
  const agent = new Agent({
    model: scriptedModel([
      [
        ask("readFile", { path: "a.txt" }),
        ask("writeFile", { path: "b.txt", content: "b" }),
        ask("editFile", { path: "a.txt", oldText: "hello", newText: "bye" }),
      ],
      "done",
    ]),
    tools: fileTools(store),
    approve: ({ toolName }) => {
      asked.push(toolName);
      return toolName === "writeFile";
    },
  });
  assert.equal((await agent.run("go")).text, "done");
  assert.deepEqual(asked, ["writeFile", "editFile"]);
  assert.deepEqual([...store.files().keys()], ["a.txt", "b.txt"]);
  assert.equal(new TextDecoder().decode(store.files().get("a.txt")), "hello", "the denied edit did not happen");
});

test("approval by path", async () => {
  const tools = fileTools(new MemoryFiles(), { needsApproval: (path) => !path.startsWith("drafts/") });
  assert.equal(await tools.writeFile.needsApproval({ path: "./drafts//a", content: "" }), false);
  assert.equal(await tools.writeFile.needsApproval({ path: "drafts.txt", content: "" }), true);
  await assert.rejects(
    async () => tools.writeFile.needsApproval({ path: "drafts/../x", content: "" }),
    /leads upwards/,
  );
  assert.deepEqual(Object.keys(readingTools(new MemoryFiles())), ["readFile", "listFiles", "searchFiles"]);
});

test("a search stops when its run does", async () => {
  const tools = readingTools(new MemoryFiles({ a: "x", b: "x" }));
  const signal = AbortSignal.abort(new Error("enough"));
  await assert.rejects(tools.searchFiles.execute({ text: "x" }, { ...context(), signal }), /enough/);
});
