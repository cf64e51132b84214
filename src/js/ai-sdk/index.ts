/**
 * Models of the AI SDK's providers as models of crablet.
 *
 * @packageDocumentation
 */
export { fromLanguageModel, type LanguageModel, type LanguageModelOptions } from "./language-model.js";
