import { Agent, openaiCompatible, tool } from "crablet";

const input = { type: "object", properties: { i: { type: "number" } }, required: ["i"] };

export function create({ baseUrl }) {
  return async ({ apiKey, turns, tool: work }) => {
    const agent = new Agent({
      model: openaiCompatible("bench", { baseUrl: `${baseUrl}/v1`, apiKey }),
      maxSteps: turns + 5,
      // The calls of all turns are alike.
      // The calls of all turns are alike.
      maxIdenticalSteps: 0,
      tools: { noop: tool({ description: "does nothing", input, execute: ({ i }) => work(i) }) },
    });
    let text = "";
    for await (const event of agent.stream("go")) if (event.type === "text-delta") text += event.delta;
    return text;
  };
}
