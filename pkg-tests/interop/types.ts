// What crablet hands to the AI SDK has the types that the AI SDK wants.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";
import { Agent } from "crablet";
import { fromLanguageModel } from "crablet/ai-sdk";
import { scriptedModel } from "crablet/test";
import { SessionTransport, toUIMessages } from "crablet/ui";

const session = new Agent({ model: scriptedModel([]) }).session();
export const transport: ChatTransport<UIMessage> = new SessionTransport({ session });
export const messages: UIMessage[] = toUIMessages(session.getState());
export const stream: ReadableStream<UIMessageChunk> = session.send("hi").toUIMessageStream();

const provider = createOpenAICompatible({ name: "local", baseURL: "http://localhost:8080/v1" });
export const agent = new Agent({ model: fromLanguageModel(provider("m")) });
