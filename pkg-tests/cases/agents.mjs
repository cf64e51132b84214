// Agents of the package that talk to the replay server.
import { Agent, anthropic, bedrock, gemini, openai, openaiCompatible, tool } from "crablet";

const responses = (baseUrl) => openai("m", { api: "responses", baseUrl, apiKey: "key" });

/** The wire protocols by the names of the cases and of the recordings, and how a model of each is made. */
const WIRES = {
  "openai-chat": (baseUrl, provider) => openaiCompatible("m", { baseUrl: `${baseUrl}/v1`, provider }),
  anthropic: (baseUrl) => anthropic("m", { baseUrl, apiKey: "key" }),
  gemini: (baseUrl) => gemini("m", { baseUrl, apiKey: "key" }),
  responses,
  "openai-responses": responses,
  bedrock: (baseUrl) =>
    bedrock("m", { baseUrl, region: "us-east-1", credentials: { accessKeyId: "id", secretAccessKey: "secret" } }),
};

/** Whether there is a wire of this name. */
export const isWire = (name) => Object.hasOwn(WIRES, name);

/** An agent that has the tools of the expected calls, so that a call that must not run would be seen to. */
export function agentOf(wire, url, { calls = [], executed = [], provider, ...options } = {}) {
  const tools = {};
  for (const { name } of calls) {
    tools[name] = tool({
      description: name,
      input: { type: "object" },
      execute: (_input, { callId }) => {
        executed.push(callId);
        return "ran";
      },
    });
  }
  return new Agent({ model: WIRES[wire](url, provider), tools, retry: false, ...options });
}
