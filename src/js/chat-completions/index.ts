/**
 * Agents behind the wire of OpenAI's Chat Completions, for every client that speaks it.
 *
 * @packageDocumentation
 */
export { chatCompletionsHandler, type ChatCompletionsOptions, type ServedAgent } from "./handler.js";
