// The page's own tools, for agents of this machine: what they are, and the connection by which the shim offers them.
import { signal } from "@preact/signals";
import { mcp } from "crablet";
import { expose, type ExposedState, serverTool } from "crablet/server";
import { ask, transcript } from "../chat/conversation";
import { DEFAULT_SHIM_URL } from "./server-settings";

/** How the offer is at the moment; `undefined` while nothing is offered. */
export const exposedState = signal<ExposedState | undefined>(undefined);

/** Ends the offer that is made. */
let ending: AbortController | undefined;

const WHO = { user: "User", text: "Agent" };

const tools = {
  read_conversation: serverTool({
    title: "Read the conversation",
    description: "Gives what the user and the agent of this page have said, oldest first.",
    input: { type: "object", properties: {} },
    annotations: { readOnlyHint: true },
    execute: () =>
      transcript.value.items
        .flatMap((item) => (item.kind === "user" || item.kind === "text" ? [`${WHO[item.kind]}: ${item.text}`] : []))
        .join("\n\n"),
  }),
  ask_agent: serverTool({
    title: "Ask the agent of the page",
    description: "Sends a message to the agent of this page, which may use all of its tools, and gives its answer.",
    input: { type: "object", properties: { message: { type: "string" } }, required: ["message"] },
    // What it does is for the page's own model and tools to say.
    annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
    execute: ({ message }, { signal }) => ask(String(message), signal),
  }),
};

/**
 * Offers the page's tools through the shim that this code is of, until `stopExposing`.
 *
 * @throws CrabletError as `mcp.pairShim` does.
 */
export async function startExposing(code: string, url: string, signal: AbortSignal): Promise<void> {
  const address = url.trim() || DEFAULT_SHIM_URL;
  const { token } = await mcp.pairShim({ code: code.trim(), url: address, signal });
  stopExposing();
  ending = new AbortController();
  const ended = ending.signal;
  const { state } = expose(tools, {
    name: "crablet playground",
    shim: { token, url: address },
    signal: ended,
    // It is called before `expose` returns too.
    onState: (state) => {
      if (!ended.aborted) exposedState.value = state;
    },
  });
  exposedState.value = state;
}

/** Takes the offer back. Calls that are at work fail for the agents that made them. */
export function stopExposing(): void {
  ending?.abort();
  ending = undefined;
  exposedState.value = undefined;
}
