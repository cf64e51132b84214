/**
 * Models that run in the browser itself, as models of an agent. Nothing is downloaded by this package: each function takes what the
 * browser or the library has made.
 *
 * @packageDocumentation
 */
export {
  type CompletionChunk,
  type CompletionEngine,
  engineModel,
  type EngineOptions,
  type Wllama,
  wllamaModel,
} from "./completions.js";
export { type PromptApi, promptApiModel, type PromptApiOptions, type PromptApiSession } from "./prompt-api.js";
