/**
 * Chat front ends of the AI SDK (`useChat`): what they post, and what they show.
 *
 * @packageDocumentation
 */
export {
  answerChat,
  type AnswerOptions,
  chatHandler,
  type ChatHandlerOptions,
  resumeChat,
} from "./answer.js";
export { type ChatPost, type PostedMessage, type PostedPart, readChatPost } from "./chat-post.js";
export { type ChatTransportRequest, SessionTransport } from "./transport.js";
export { toUIMessages, type UIAnswerPart, type UIMessage, type UIToolPart } from "./ui-message.js";
export type {
  UIContentPart,
  UIFinishReason,
  UIMessageChunk,
  UIMessageMetadata,
  UIMessageStreamOptions,
} from "../ui-message-stream.js";
