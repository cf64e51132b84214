import { Agent } from "./agent.js";
import { CrabletError } from "./error.js";
import type { McpQuestionContext, McpSamplingRequest, McpSamplingResult } from "./mcp-handlers.js";
import type { McpContent } from "./mcp-protocol.js";
import type { FilePart, TextPart } from "./message.js";
import type { Model, ModelFunction } from "./model.js";
import type { MaybePromise } from "./tool.js";

/** How a server's request for a model's answer is decided about. */
export interface SampleOptions {
  /** Asks the user. The request costs tokens and may carry anything, so there is no default. What it throws refuses. */
  readonly allow: (request: McpSamplingRequest, context: McpQuestionContext) => MaybePromise<boolean>;
  /** The most tokens of an answer, whatever the server asks for. Default: what the server asks for. */
  readonly maxTokens?: number;
}

/**
 * A handler for `sampling` that answers servers with a model of crablet, if the user allows it. The model has no tools and
 * sees nothing but what the server sent.
 */
export function sampleWith(
  model: Model | ModelFunction,
  { allow, maxTokens }: SampleOptions,
): (request: McpSamplingRequest, context: McpQuestionContext) => Promise<McpSamplingResult> {
  return async (request, context) => {
    if (!(await allow(request, context))) {
      throw new CrabletError({ kind: "aborted", message: "the user did not allow the request for a model's answer" });
    }
    const agent = new Agent({
      model,
      ...(request.systemPrompt !== undefined && { instructions: request.systemPrompt }),
      maxSteps: 1,
      modelOptions: {
        maxTokens: Math.min(request.maxTokens, maxTokens ?? request.maxTokens),
        ...(request.temperature !== undefined && { temperature: request.temperature }),
        ...(request.stopSequences !== undefined && { stop: request.stopSequences }),
      },
    });
    try {
      const { text, stopReason } = await agent.run(promptOf(request), { signal: context.signal });
      return {
        role: "assistant",
        content: { type: "text", text },
        model: typeof model === "function" ? model.name || "function" : model.id,
        stopReason: stopReason === "length" ? "maxTokens" : "endTurn",
      };
    } finally {
      await agent.close();
    }
  };
}

/** The messages as one prompt. Where there are several, each is introduced by who said it. */
function promptOf({ messages }: McpSamplingRequest): (TextPart | FilePart)[] {
  return messages.flatMap(({ role, content }) => {
    const parts = [content].flat().flatMap(partOf);
    return messages.length > 1 ? [{ type: "text", text: `${role}:` }, ...parts] : parts;
  });
}

function partOf(content: McpContent): (TextPart | FilePart)[] {
  const { type, text, data, mimeType } = content;
  if (typeof text === "string") return [{ type: "text", text }];
  if ((type === "image" || type === "audio") && typeof data === "string") {
    return [{ type: type as "image" | "audio", mediaType: String(mimeType), data }];
  }
  return [{ type: "text", text: JSON.stringify(content) }];
}
