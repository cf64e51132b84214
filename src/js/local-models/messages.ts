import type { AssistantMessage, ToolMessage } from "../message.js";

/** What a model said, in the form that it was asked for. */
export function assistantText({ content }: AssistantMessage): string {
  const calls = content.flatMap((part) =>
    part.type === "tool-call" ? [{ tool: part.toolName, input: part.input ?? {} }] : [],
  );
  const text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
  if (calls.length > 0) return JSON.stringify({ calls });
  return text;
}

/** Results of tools for a model that knows no such thing. */
export function resultText({ content }: ToolMessage): string {
  return content
    .map(({ toolName, content: parts, isError }) => {
      const text = parts.map((part) => (part.type === "text" ? part.text : "(a file)")).join("");
      return `The tool ${toolName} ${isError ? "failed" : "gave"}: ${text}`;
    })
    .join("\n");
}
