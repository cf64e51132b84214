// A page with the real `useChat`. The test drives it through `window.chat` and reads `window.seen`.
import { useChat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from "ai";
import { Agent, tool } from "crablet";
import { scriptedModel } from "crablet/test";
import { SessionTransport } from "crablet/ui";
import { createElement } from "react";
import { createRoot } from "react-dom/client";

/** Every state of the messages that was rendered, as JSON. */
window.renders = [];

function Chat({ transport, id, messages }) {
  const chat = useChat({
    transport,
    id,
    messages,
    sendAutomaticallyWhen: (state) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(state) || lastAssistantMessageIsCompleteWithToolCalls(state),
  });
  window.chat = chat;
  window.renders.push(JSON.stringify(chat.messages));
  return createElement("output", null, chat.status);
}

let root;
window.open_ = (options = {}) => {
  root?.unmount();
  window.renders = [];
  root = createRoot(document.querySelector("main"));
  const { api = "/api/chat", local, ...rest } = options;
  const transport = local
    ? new SessionTransport({ session: localAgent().session() })
    : new DefaultChatTransport({ api });
  root.render(createElement(Chat, { transport, ...rest }));
};

/** An agent in the page itself. */
function localAgent() {
  const model = scriptedModel([
    ["from the page: ", { type: "tool-call", callId: "p1", toolName: "where", input: {} }],
    "done in the page",
  ]);
  const where = tool({
    description: "w",
    input: { type: "object" },
    needsApproval: true,
    execute: () => location.pathname,
  });
  return new Agent({ model, tools: { where } });
}

/** Waits until the chat rendered what the function, given as text, is content with. */
window.until = async (source, limit = 20_000) => {
  const holds = new Function("chat", `return ${source}`);
  const deadline = Date.now() + limit;
  while (!holds(window.chat ?? { messages: [], status: "none" })) {
    if (Date.now() > deadline)
      throw new Error(
        `never: ${source}; now ${window.chat?.status} ${window.chat?.error} ${JSON.stringify(window.chat?.messages)}`,
      );
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return window.chat.messages;
};
