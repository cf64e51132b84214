import type { ToolCall } from "../event.js";
import type { AssistantMessage, Message, ToolResultPart } from "../message.js";
import type { SessionState } from "../session.js";
import { answerId, type UIContentPart, uiPartOf, urlOf } from "../ui-message-stream.js";

/** A call in a message of the AI SDK: its type is `tool-` and the name of the tool. */
export type UIToolPart = {
  type: `tool-${string}`;
  toolCallId: string;
  input: unknown;
} & (
  | { state: "input-available" }
  | { state: "approval-requested"; approval: { id: string } }
  | { state: "output-available"; output: unknown }
  | { state: "output-error"; errorText: string }
);

/** A part of an answer, as the AI SDK has it. */
export type UIAnswerPart =
  | { type: "step-start" }
  | { type: "text" | "reasoning"; text: string; state: "done" }
  | { type: "source-url"; sourceId: string; url: string; title?: string }
  | { type: "file"; mediaType: string; url: string }
  | { type: "steering-message"; id: string; parts: UIContentPart[] }
  | UIToolPart;

/** A message of the AI SDK. */
export type UIMessage =
  | { id: string; role: "user"; parts: UIContentPart[] }
  | { id: string; role: "assistant"; parts: UIAnswerPart[] };

/**
 * The conversation as messages of the AI SDK, to begin `useChat` with: `messages: toUIMessages(session.getState())`. Calls that
 * wait for an approval ask for it there too. What only the model is told, such as a summary, is left out.
 */
export function toUIMessages({ messages, pending }: Pick<SessionState, "messages" | "pending">): UIMessage[] {
  const results = new Map<string, ToolResultPart>();
  for (const { role, content } of messages) {
    if (role === "tool") for (const result of content) results.set(result.callId, result);
  }
  const shown: UIMessage[] = [];
  for (const message of messages) {
    if (message.role === "user") addUser(shown, message);
    else if (message.role === "assistant") answerOf(shown).push(...partsOf(message, results, pending));
  }
  return shown;
}

function addUser(shown: UIMessage[], message: Message & { role: "user" }): void {
  const { origin = "prompt", id = `message_${shown.length}` } = message;
  const parts = message.content.map(uiPartOf);
  if (origin === "prompt") shown.push({ id, role: "user", parts });
  else if (origin === "steered" || origin === "follow-up")
    answerOf(shown).push({ type: "steering-message", id, parts });
}

/** The parts of the answer to the last prompt. */
function answerOf(shown: UIMessage[]): UIAnswerPart[] {
  const last = shown.at(-1);
  if (last?.role === "assistant") return last.parts;
  const parts: UIAnswerPart[] = [];
  shown.push({ id: answerId(last?.id ?? ""), role: "assistant", parts });
  return parts;
}

function partsOf(
  { content }: AssistantMessage,
  results: ReadonlyMap<string, ToolResultPart>,
  pending: readonly ToolCall[],
): UIAnswerPart[] {
  const parts = content.flatMap((part, index): UIAnswerPart[] => {
    switch (part.type) {
      case "text":
      case "reasoning":
        return [{ type: part.type, text: part.text, state: "done" }];
      case "source":
        return part.url === undefined
          ? []
          : [
              {
                type: "source-url",
                sourceId: `source-${index}`,
                url: part.url,
                ...(part.title && { title: part.title }),
              },
            ];
      case "tool-call": {
        const { callId: toolCallId, toolName, input, inputText } = part;
        const call = { type: `tool-${toolName}` as const, toolCallId, input: input ?? inputText };
        const result = results.get(toolCallId);
        if (result?.isError === true) return [{ ...call, state: "output-error", errorText: textOf(result) }];
        if (result !== undefined)
          return [{ ...call, state: "output-available", output: result.output ?? textOf(result) }];
        return pending.some(({ callId }) => callId === toolCallId)
          ? [{ ...call, state: "approval-requested", approval: { id: toolCallId } }]
          : [{ ...call, state: "input-available" }];
      }
      case "provider":
        return [];
      default:
        return [{ type: "file", mediaType: part.mediaType, url: urlOf(part) }];
    }
  });
  return [{ type: "step-start" }, ...parts];
}

const textOf = ({ content }: ToolResultPart): string =>
  content.map((part) => (part.type === "text" ? part.text : "")).join("");
