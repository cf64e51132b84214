// A server that answers questions as a stream of events, each with a model and its tools behind it:
//
//   deno run --allow-net --allow-env=MODEL_URL,MODEL,API_KEY,PORT serve.ts
//   curl --data "What time is it?" http://localhost:8000
//
// `readEvents` of crablet reads the answer in a page. When the client goes away, the run and its request to the model end.
// Put a login in front of it before others can reach it: the questions are at your expense.
import { Agent, openaiCompatible, tool } from "crablet";

/** The longest question, in characters. */
const MAX_QUESTION = 100_000;

const key = Deno.env.get("API_KEY");

const agent = new Agent({
  model: openaiCompatible(Deno.env.get("MODEL") ?? "qwen3", {
    baseUrl: Deno.env.get("MODEL_URL") ?? "http://localhost:11434/v1",
    ...(key && { apiKey: () => key }),
  }),
  instructions: "Answer briefly.",
  tools: {
    current_time: tool({
      description: "The current date and time, in UTC.",
      input: { type: "object", properties: {} },
      repeatable: true,
      execute: () => new Date().toISOString(),
    }),
  },
});

Deno.serve({ hostname: "127.0.0.1", port: Number(Deno.env.get("PORT") ?? 8000) }, async (request) => {
  if (request.method !== "POST") return new Response("POST a question.", { status: 405 });
  const question = await request.text();
  if (question === "" || question.length > MAX_QUESTION)
    return new Response(`A question has 1 to ${MAX_QUESTION} characters.`, { status: 400 });
  return agent.stream(question).toResponse();
});
