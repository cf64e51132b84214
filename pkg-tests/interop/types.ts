// What crablet hands to other projects has the types that they want, and takes theirs.
/// <reference types="dom-chromium-ai" />
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { MLCEngineInterface } from "@mlc-ai/web-llm";
import type { Wllama } from "@wllama/wllama";
import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";
import { Agent } from "crablet";
import { fromLanguageModel } from "crablet/ai-sdk";
import { engineModel, promptApiModel, wllamaModel } from "crablet/local-models";
import { scriptedModel } from "crablet/test";
import { SessionTransport, toUIMessages } from "crablet/ui";

const session = new Agent({ model: scriptedModel([]) }).session();
export const transport: ChatTransport<UIMessage> = new SessionTransport({ session });
export const messages: UIMessage[] = toUIMessages(session.getState());
export const stream: ReadableStream<UIMessageChunk> = session.send("hi").toUIMessageStream();

const provider = createOpenAICompatible({ name: "local", baseURL: "http://localhost:8080/v1" });
export const agent = new Agent({ model: fromLanguageModel(provider("m")) });

declare const engine: MLCEngineInterface;
declare const wllama: Wllama;
export const local = [engineModel(engine), wllamaModel(wllama), promptApiModel({ languageModel: LanguageModel })];
