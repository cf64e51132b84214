import { create } from "../adapters/agent/langchain.mjs";

export const first = async ({ model, apiKey }) => create({ baseUrl: model })({ apiKey, turns: 1, tool: () => "ok" });
