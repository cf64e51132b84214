// The examples that are one program each: a chat in the terminal on Node, a server on Deno, a page in Rust.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isAccessible } from "../lib/accessible.mjs";
import { withPage } from "../lib/browser.mjs";
import { run, startServer } from "../lib/process.mjs";
import { repository } from "../lib/project.mjs";
import { serveFolder } from "../lib/servers.mjs";
import { startSteppingModel } from "../lib/stepping-model.mjs";

export default async function examplePrograms(project) {
  await cp(join(repository, "examples"), join(project.folder, "examples"), { recursive: true });
  await inNode(project);
  await inDeno(project);
  await inRust(project);
  return "a chat in the terminal that is killed and goes on, a server in Deno, a page in Rust";
}

/** Killed while the model speaks; the next call goes on, asks, and writes once. The second prompt is not allowed to. */
async function inNode(project) {
  const folder = join(project.folder, "examples/node");
  const files = join(folder, "files");
  await mkdir(files);
  const input = (step) => ({ path: "note.txt", content: `written in step ${step}` });
  const model = await startSteppingModel({ steps: 1, tool: "writeFile", input });
  const given = ["chat.mjs", "--folder", files];
  const env = { MODEL_URL: model.url, MODEL: "steps", API_KEY: "sk-of-the-user" };
  try {
    const first = await startServer(process.execPath, [...given, "Write the note."], {
      cwd: folder,
      env,
      ready: /Now step 1\./,
    });
    await first.kill();
    model.release(1);
    model.release(2);
    const output = await converse([...given, "Write it again."], ["y", "n"], { cwd: folder, env });
    assert.match(output, /All is done: .*\n/);
    assert.match(output, /\[writeFile failed\]/);
    assert.equal(output.match(/May the agent use writeFile/g)?.length, 2);
    assert.equal(await readFile(join(files, "note.txt"), "utf8"), "written in step 1");
    assert.deepEqual([...model.keys], ["Bearer sk-of-the-user"]);
  } finally {
    await model.stop();
  }
}

/** Runs a program of Node to its end, and gives it an answer each time it asks. */
async function converse(args, answers, options) {
  const child = spawn(process.execPath, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let output = "";
  let asked = 0;
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => {
      output += text;
      const questions = output.match(/\[y\/N\]/g)?.length ?? 0;
      while (asked < questions) child.stdin.write(`${answers[asked++] ?? ""}\n`);
    });
  const [code] = await once(child, "close");
  assert.equal(code, 0, output);
  return output;
}

async function inDeno(project) {
  const folder = join(project.folder, "examples/deno");
  const deno = join(repository, "pkg-tests/runtimes/node_modules/.bin/deno");
  const quiet = { DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1" };
  await run(deno, ["check", "--no-lock", "serve.ts"], { cwd: folder, env: quiet });
  const { readEvents } = await import(pathToFileURL(join(project.folder, "node_modules/crablet/index.js")).href);
  const model = await startSteppingModel({ steps: 1, tool: "current_time", held: false });
  try {
    const permissions = ["--allow-net=127.0.0.1", "--allow-env=MODEL_URL,MODEL,API_KEY,PORT"];
    const server = await startServer(deno, ["run", "--no-lock", "--no-prompt", ...permissions, "serve.ts"], {
      cwd: folder,
      env: { ...quiet, MODEL_URL: model.url, MODEL: "steps", API_KEY: "sk-of-the-server", PORT: "0" },
      ready: /(http:\/\/127\.0\.0\.1:\d+)/,
    });
    try {
      const events = [];
      const response = await fetch(server.match[1], { method: "POST", body: "What time is it?" });
      for await (const event of readEvents(response)) events.push(event);
      assert.match(events.at(-1).text, /^All is done: "?\d{4}-\d\d-\d\dT/);
      assert.equal(JSON.stringify(events).includes("sk-of-the-server"), false);
      assert.equal((await fetch(server.match[1], { method: "POST" })).status, 400);
    } finally {
      await server.stop();
    }
    assert.deepEqual([...model.keys], ["Bearer sk-of-the-server"]);
  } finally {
    await model.stop();
  }
}

async function inRust(project) {
  const folder = join(project.folder, "examples/wasm");
  const options = ["--dev", "--target", "web", "--no-pack", "--no-opt", "--mode", "no-install"];
  const place = ["--out-dir", join(folder, "pkg"), join(repository, "examples/wasm")];
  await run("wasm-pack", ["--log-level", "warn", "build", ...options, ...place], { timeout: 600_000 });
  const site = await serveFolder(folder);
  const model = await startSteppingModel({ steps: 1, tool: "local_time", input: () => ({}), held: false });
  try {
    await withPage(async (page) => {
      await page.goto(site.url);
      await page.getByLabel("Address of a server").fill(model.url);
      await page.getByLabel("Question").fill("What time is it?");
      await page.getByRole("button", { name: "Ask" }).click();
      await page.getByText(/\[local_time\]\s+All is done: .*\d\d:\d\d:\d\d GMT/).waitFor();
      await isAccessible(page, "rust-answer");
    });
  } finally {
    await model.stop();
    await site.stop();
  }
}
