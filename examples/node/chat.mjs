// A chat in the terminal, with the files of a folder: `node chat.mjs [--session NAME] [--folder FOLDER] PROMPT`.
//
// The conversation is kept in the folder `sessions`. A run that was killed is taken up where it was by the next call.
// MODEL_URL and MODEL name the model, API_KEY is its key; a local Ollama needs none.
import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";
import { Agent, openaiCompatible } from "crablet";
import { fileStore } from "crablet/stores";
import { fileTools, folderFiles } from "crablet/tools";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { session: { type: "string", default: "main" }, folder: { type: "string", default: "." } },
});
const prompt = positionals.join(" ");
if (prompt === "") {
  console.error("usage: node chat.mjs [--session NAME] [--folder FOLDER] PROMPT");
  process.exit(2);
}

const { MODEL = "qwen3", MODEL_URL = "http://localhost:11434/v1", API_KEY } = process.env;
const agent = new Agent({
  model: openaiCompatible(MODEL, { baseUrl: MODEL_URL, ...(API_KEY && { apiKey: () => API_KEY }) }),
  instructions: "Use the tools you have. Answer in a few sentences.",
  tools: fileTools(folderFiles(values.folder)),
  approve: ({ toolName, input }) => ask(`May the agent use ${toolName} with ${JSON.stringify(input)}? [y/N] `),
});

const session = await agent.open(values.session, fileStore("sessions"));
const interrupted = session.resume();
if (interrupted) await show(interrupted);
await show(session.send(prompt));
await agent.close();

/** Prints what happens, until the run is over. Ctrl-C stops it; what was done so far is saved. */
async function show(run) {
  const stop = () => run.abort();
  process.once("SIGINT", stop);
  try {
    for await (const event of run) {
      if (event.type === "text-delta") process.stdout.write(event.delta);
      else if (event.type === "text-end") process.stdout.write("\n");
      else if (event.type === "tool-call") console.log(`[${event.toolName} ${JSON.stringify(event.input)}]`);
      else if (event.type === "tool-result" && event.isError) console.log(`[${event.toolName} failed]`);
      else if (event.type === "step-retry") console.error(`\n[forget that, trying again: ${event.error.message}]`);
    }
  } catch (error) {
    console.error(`${error.kind ?? "error"}: ${error.message}`);
    process.exitCode = 1;
  } finally {
    process.off("SIGINT", stop);
  }
}

async function ask(question) {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return (await terminal.question(question)).trim().toLowerCase() === "y";
  } finally {
    terminal.close();
  }
}
