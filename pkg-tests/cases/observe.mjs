// A run in the vocabulary of the cases and the recordings.

/** Reads a run to its end. What failed is told by its events. */
export async function observe(run) {
  let message;
  let end;
  const streamed = { text: "", reasoning: "" };
  try {
    for await (const event of run) {
      if (event.type === "text-delta") streamed.text += event.delta;
      if (event.type === "reasoning-delta") streamed.reasoning += event.delta;
      if (event.type === "step-end") message = event.message;
      if (event.type === "run-end") end = event;
    }
  } catch {
    // The error is in `run-end` too.
  }
  if (end === undefined) throw new Error("the run had no run-end");
  if (message === undefined)
    return {
      ...streamed,
      refusal: "",
      toolCalls: [],
      stopReason: name(end.stopReason),
      usage: usageOf(end.usage),
      error: errorOf(end.error),
    };
  // A request that came after the last whole answer is not part of it.
  return { ...messageOf(message), usage: usageOf(end.usage), error: null };
}

function messageOf({ content, stopReason }) {
  const seen = { text: "", refusal: "", reasoning: "", toolCalls: [], stopReason: name(stopReason), details: [] };
  const counted = { citations: 0, signatures: 0, encryptedReasoning: 0 };
  const blocks = [];
  for (const part of content) {
    const { replay = {} } = part;
    if (replay.signature !== undefined || "thoughtSignature" in replay) counted.signatures += 1;
    if (part.type === "text") seen[replay.refusal === undefined ? "text" : "refusal"] += part.text;
    if (part.type === "text" && replay.refusal === undefined) blocks.push("text");
    if (part.type === "reasoning") {
      seen.reasoning += part.text;
      seen.details.push(...(replay.reasoning_details ?? []));
      if (typeof replay.encrypted_content === "string") counted.encryptedReasoning += 1;
      blocks.push(replay.redacted === undefined ? "thinking" : "redacted_thinking");
    }
    if (part.type === "tool-call") {
      seen.toolCalls.push(callOf(part));
      blocks.push("tool_use");
    }
    if (part.type === "source") counted.citations += 1;
    if (part.type === "provider") blocks.push(part.kind);
  }
  return { ...seen, ...counted, blocks };
}

function callOf({ callId: id, toolName, input, inputText }) {
  if (inputText === undefined) return { id, name: toolName, arguments: input };
  return { id, name: toolName, arguments: null, invalid: true, cutBeforeInput: inputText === "" };
}

function usageOf(usage = {}) {
  return {
    input: usage.inputTokens,
    output: usage.outputTokens,
    cacheRead: usage.cacheReadTokens,
    cacheWrite: usage.cacheWriteTokens,
    reasoning: usage.reasoningTokens,
  };
}

function errorOf(error) {
  if (error === undefined) return null;
  const { kind, message, retryable, status, code, retryAfterMs } = error;
  return {
    kind: name(kind),
    message,
    retryable,
    status,
    code,
    retry_after_s: retryAfterMs === undefined ? undefined : retryAfterMs / 1000,
  };
}

/** Cases write `_` for `-`. */
function name(word) {
  return word.replaceAll("-", "_");
}
