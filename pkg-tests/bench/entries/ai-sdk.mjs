import { create } from "../adapters/agent/ai-sdk.mjs";

export const first = async ({ model, apiKey }) => create({ baseUrl: model })({ apiKey, turns: 1, tool: () => "ok" });
