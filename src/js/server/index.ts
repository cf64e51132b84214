/**
 * An MCP server of your own, in a page, a worker, an extension or a program: tools, resources and prompts for clients of both
 * eras. It needs no WebAssembly.
 *
 * @packageDocumentation
 */
export {
  type Caller,
  type CatalogOptions,
  type PromptMessage,
  type ResourceContent,
  type ServerContext,
  type ServerPrompt,
  type ServerResource,
  type ServerTool,
  type ServerToolDefinition,
  serverTool,
  type ToolHints,
} from "./catalog.js";
export { type ContentBlock, contentBlocks } from "./content-block.js";
export type { Complete } from "./connection.js";
export {
  type Exposed,
  type ExposedState,
  type ExposedTools,
  type ExposedToolState,
  expose,
  type ExposeOptions,
} from "./expose.js";
export { type HttpHandler, type HttpHandlerOptions, httpHandler } from "./http/handler.js";
export { type NodeRequest, type NodeResponse, nodeListener } from "./http/node.js";
export { ask, type InputRequest, type NeedsInput, needsInput } from "./input-request.js";
export { McpServer, type McpServerOptions, type ServerConnection } from "./mcp-server.js";
export { type LogLevel, refusal } from "./protocol.js";
export { documentTools, type ModelContext, type RegisteredTool, type ToolSource, type WebMcpTool } from "./web-mcp.js";
