// Prints events of every type that a few runs give, as JSON, one a line: what the declarations are held to.
import { Agent, CrabletError, subAgent, tool, toolOutput } from "crablet";
import { scriptedModel } from "crablet/test";

const input = { type: "object", properties: { city: { type: "string", pattern: "^(?=x)" } } };
const call = (toolName, given = {}) => ({ type: "tool-call", callId: toolName, toolName, input: given });
const print = (event) => console.log(JSON.stringify(event));

/** A run with tools of every kind, an approval, a message that is steered, an answer with an object. */
const helper = new Agent({ model: scriptedModel(["looked up"]) });
const tools = {
  plain: tool({ description: "p", input, execute: (_, { progress }) => void progress({ done: 1 }) ?? { degrees: 12 } }),
  detailed: tool({
    description: "d",
    input,
    execute: () => toolOutput({ content: [{ type: "text", text: "told" }], details: { shown: true } }),
  }),
  failing: tool({ description: "f", input, needsApproval: true, execute: () => Promise.reject(new Error("no")) }),
  client: tool({ description: "c", input }),
  helper: subAgent({ description: "h", agent: helper }),
};
const model = scriptedModel([
  new CrabletError({ kind: "overloaded", message: "at first it fails", retryable: true }),
  [
    { type: "reasoning-delta", delta: "hm" },
    { type: "text-delta", delta: "let me see" },
    ...["plain", "detailed", "failing", "client"].map((name) => call(name, { city: "Oslo" })),
    call("helper", { prompt: "look" }),
  ],
  '{"answer":42}',
  "another",
]);
const agent = new Agent({ model, tools, approve: () => true, retry: { baseDelayMs: 1 }, maxSteps: 4 });
const run = agent.stream("go", { output: { type: "object", properties: { answer: { type: "number" } } } });
for await (const event of run) {
  print(event);
  if (event.type === "tool-start" && event.clientSide) {
    run.toolResult("client", { city: "Oslo" });
    run.steer("in English");
  }
}

/** A run that reaches a limit and a history that is compacted. */
const talkative = new Agent({
  model: scriptedModel(["one ".repeat(400), "two ".repeat(400), [call("plain")], "three"]),
  tools,
  maxSteps: 1,
  compaction: { thresholdTokens: 600, keepTokens: 100 },
});
const session = talkative.session();
for (const prompt of ["first ".repeat(300), "second ".repeat(300), "third"]) {
  try {
    for await (const event of session.send(prompt)) print(event);
  } catch {
    // The last event says it.
  }
}
