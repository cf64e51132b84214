// One small conversation with the demo model, the same in every runtime: a tool call, its result, a streamed answer. The package
// is given, since it is loaded in more than one way.
import { FORECAST } from "./expected.mjs";

/**
 * @param {Pick<typeof import("crablet"), "Agent" | "openaiCompatible" | "tool">} crablet
 * @param {string} modelUrl the base URL of the demo model
 * @returns {Promise<string>} a line about what happened
 */
export async function converse({ Agent, openaiCompatible, tool }, modelUrl) {
  const agent = new Agent({
    model: openaiCompatible("scripted-demo", { baseUrl: modelUrl }),
    tools: {
      get_weather: tool({
        description: "Get the weather of a city",
        input: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
        execute: () => FORECAST,
      }),
    },
  });
  const run = agent.stream('get the weather in "Oslo"');
  const calls = [];
  let streamed = "";
  for await (const event of run) {
    if (event.type === "text-delta") streamed += event.delta;
    if (event.type === "tool-call") calls.push(`${event.type} ${event.toolName} ${JSON.stringify(event.input)}`);
  }
  const { text } = await run.result;
  return `${calls.join(", ")}; answer quotes the forecast: ${text.includes(FORECAST)}; streamed as given: ${streamed === text}`;
}
