/**
 * An agent SDK in one small WebAssembly module: agent loop, LLM wire protocols and MCP.
 *
 * @packageDocumentation
 */
export {
  Agent,
  type AgentOptions,
  type BeforeToolCall,
  type CallOutcome,
  type ConnectedServer,
  type RunOptions,
} from "./agent.js";
export { CrabletError, type ErrorInfo, type ErrorKind } from "./error.js";
export { readEvents } from "./event-stream.js";
export type { AgentEvent, EventBase, ToolCall, ToolName } from "./event.js";
export { init, type WasmSource } from "./load.js";
export {
  mcp,
  McpClient,
  type McpProgress,
  type McpRequest,
  type McpResult,
  type McpServer,
  type McpTool,
  type WebSocketClass,
} from "./mcp.js";
export type {
  AssistantMessage,
  BytesPart,
  FilePart,
  Input,
  Message,
  ProviderPart,
  ReasoningPart,
  SourcePart,
  StopReason,
  TextPart,
  ToolCallPart,
  ToolMessage,
  ToolResultPart,
  Usage,
  UserMessage,
} from "./message.js";
export {
  anthropic,
  type AnthropicOptions,
  type AwsCredentials,
  azure,
  type AzureOptions,
  bedrock,
  type BedrockOptions,
  cerebras,
  type CompatibleOptions,
  deepseek,
  gemini,
  groq,
  mistral,
  type Model,
  type ModelChunk,
  type ModelFunction,
  type ModelOptions,
  type ModelRequest,
  type OpenAIOptions,
  ollama,
  openai,
  openaiCompatible,
  openrouter,
  type Prices,
  type ProviderOptions,
  vertex,
  type VertexOptions,
  xai,
} from "./model.js";
export type { Approve, Run, RunResult, Step } from "./run.js";
export type {
  FromJsonSchema,
  Infer,
  JsonSchema,
  Schema,
  SchemaPair,
  StandardIssue,
  StandardResult,
  StandardSchema,
} from "./schema.js";
export { readServerSentEvents, type ServerSentEvent } from "./server-sent-events.js";
export type { Session, SessionSnapshot, SessionState, SessionStatus } from "./session.js";
export {
  type MaybePromise,
  tool,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  toolOutput,
  type ToolOutput,
  type ToolSet,
} from "./tool.js";
