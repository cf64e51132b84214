import type { AssistantMessage, FilePart, Message, TextPart, ToolResultPart } from "../message.js";
import type { SessionSnapshot } from "../session.js";
import { badRequest } from "./request.js";

type Fields = Readonly<Record<string, any>>;

/** What a caller said, as a conversation. */
export interface CallersConversation {
  /** Its messages of the roles `system` and `developer`. */
  readonly instructions: string;
  /** A saved session whose next step answers. */
  readonly saved: SessionSnapshot;
}

/**
 * The messages of a request as a session that stands before its next step.
 *
 * @throws CrabletError `invalid-input` for a message of another form.
 */
export function conversationOf(given: readonly unknown[]): CallersConversation {
  const instructions: string[] = [];
  const messages: Message[] = [];
  const names = new Map<string, string>();
  for (const value of given) {
    const { role, content, tool_calls: calls, tool_call_id: callId } = (value ?? {}) as Fields;
    if (role === "system" || role === "developer") instructions.push(textOf(content));
    else if (role === "user") messages.push({ role: "user", content: contentOf(content) });
    else if (role === "assistant") {
      // Clients that send an answer back as they have it send `null` for what it did not have.
      const message = assistantOf(content, calls ?? []);
      for (const part of message.content) if (part.type === "tool-call") names.set(part.callId, part.toolName);
      messages.push(message);
    } else if (role === "tool") addResult(messages, String(callId), names.get(String(callId)), contentOf(content));
    else throw badRequest(`a message has the role ${JSON.stringify(role)}`);
  }
  const last = messages.at(-1)?.role;
  if (last !== "user" && last !== "tool") throw badRequest("the last message is not one to answer");
  return { instructions: instructions.join("\n\n"), saved: { version: 1, snapshot: linesOf(messages) } };
}

/** The last results of a request by the ids of their calls; empty when it ends otherwise. */
export function resultsOf(given: readonly unknown[]): Map<string, readonly (TextPart | FilePart)[]> {
  const results = new Map<string, readonly (TextPart | FilePart)[]>();
  for (const value of [...given].reverse()) {
    const { role, content, tool_call_id: callId } = (value ?? {}) as Fields;
    if (role !== "tool") break;
    results.set(String(callId), contentOf(content));
  }
  return results;
}

function assistantOf(content: unknown, calls: unknown): AssistantMessage {
  const text = content === null || content === undefined ? "" : textOf(content);
  if (!Array.isArray(calls)) throw badRequest("the tool_calls of a message are not a list");
  const parts = calls.map((given: Fields | null): AssistantMessage["content"][number] => {
    const { id, function: called } = given ?? {};
    if (typeof id !== "string" || typeof called?.name !== "string")
      throw badRequest("a tool call lacks its id or name");
    const call = { type: "tool-call", callId: id, toolName: called.name } as const;
    if (typeof called.arguments === "object" && called.arguments !== null) return { ...call, input: called.arguments };
    try {
      return { ...call, input: JSON.parse(called.arguments || "{}") };
    } catch {
      return { ...call, inputText: String(called.arguments), invalid: "the input is not valid JSON" };
    }
  });
  return { role: "assistant", content: [...(text === "" ? [] : [{ type: "text", text } as const]), ...parts] };
}

/** Results of one answer stand together. One that answers nothing is left out, as a provider would refuse it. */
function addResult(
  messages: Message[],
  callId: string,
  toolName: string | undefined,
  content: ToolResultPart["content"],
): void {
  if (toolName === undefined) return;
  const result: ToolResultPart = { type: "tool-result", callId, toolName, content, isError: false };
  const last = messages.at(-1);
  if (last?.role === "tool") messages[messages.length - 1] = { role: "tool", content: [...last.content, result] };
  else messages.push({ role: "tool", content: [result] });
}

function textOf(content: unknown): string {
  return contentOf(content)
    .map((part) => (part.type === "text" ? part.text : ""))
    .join("");
}

function contentOf(content: unknown): (TextPart | FilePart)[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) throw badRequest("a message has no content");
  return content.map((part: Fields): TextPart | FilePart => {
    const { type, text, refusal, image_url: image, input_audio: audio, file } = part ?? {};
    if (type === "text" && typeof text === "string") return { type: "text", text };
    if (type === "refusal" && typeof refusal === "string") return { type: "text", text: refusal };
    if (type === "image_url") return fileOf("image", String(image?.url), "image/*");
    if (type === "input_audio")
      return {
        type: "audio",
        mediaType: `audio/${audio?.format === "mp3" ? "mpeg" : "wav"}`,
        data: String(audio?.data),
      };
    if (type === "file" && typeof file?.file_data === "string")
      return {
        ...fileOf("file", file.file_data, "application/octet-stream"),
        ...(typeof file.filename === "string" && { name: file.filename }),
      };
    throw badRequest(`a message has content of the type ${JSON.stringify(type)} that cannot be read`);
  });
}

function fileOf(type: FilePart["type"], url: string, mediaType: string): FilePart {
  const data = /^data:([^;,]+)(?:;[^;,]+)*;base64,([A-Za-z0-9+/=]*)$/.exec(url);
  if (data !== null) return { type, mediaType: String(data[1]), data: String(data[2]) };
  if (!/^https?:\/\//i.test(url)) throw badRequest("a file is neither a data: nor an http(s): address");
  return { type, mediaType, url };
}

/** The text of a saved session, as `snapshot_format.md` of the crate describes it. */
function linesOf(messages: readonly Message[]): string {
  const seed = crypto.randomUUID().replaceAll("-", "").slice(0, 16);
  const idOf = (index: number): string | null =>
    index < 0 ? null : `msg_${seed}${index.toString(16).padStart(4, "0")}`;
  const entries = messages.map((message, index) => ({
    type: "message",
    parent: idOf(index - 1),
    message: { id: idOf(index), ...message },
  }));
  const state = {
    type: "state",
    head: idOf(messages.length - 1),
    nextId: messages.length + 1,
    checkpoint: 0,
    steers: [],
    followUps: [],
    run: {
      id: `run_${seed}`,
      steps: 0,
      blocks: 0,
      usage: {},
      stepUsage: {},
      timers: [],
      phase: { type: "between-steps" },
    },
  };
  const header = { format: "crablet-session", version: 2, seed };
  return [header, ...entries, state].map((entry) => `${JSON.stringify(entry)}\n`).join("");
}
