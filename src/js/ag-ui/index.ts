/**
 * AG-UI: agents for clients that speak it, and remote agents that speak it as models.
 *
 * @packageDocumentation
 */
export type { AgUiEvent, AgUiInterrupt, AgUiMessage, AgUiOutcome, AgUiToolCall, AgUiUsage } from "./events.js";
export { agUiHandler, type AgUiHandlerOptions, toAgUiEvents } from "./handler.js";
export { agUiModel, type AgUiModelOptions } from "./model.js";
export { readAgUiEvents, type ReceivedAgUiEvent } from "./read.js";
export type { AgUiOptions, AgUiRun } from "./writer.js";
