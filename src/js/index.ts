/**
 * An agent SDK in one small WebAssembly module: agent loop, LLM wire protocols and MCP.
 *
 * @packageDocumentation
 */
export {
  Agent,
  type ConnectedServer,
} from "./agent.js";
export { AgentLoop } from "./agent-loop.js";
export { CrabletError, type ErrorInfo, type ErrorKind } from "./error.js";
export { readEvents } from "./event-stream.js";
export type { AgentEvent, EventBase, ToolCall, ToolName } from "./event.js";
export type {
  BeforeToolCall,
  CallOutcome,
  ContextEdit,
  Hooks,
  ModelAnswer,
  ModelCall,
  StepChange,
  StepContext,
} from "./hooks.js";
export { init, type WasmSource } from "./load.js";
export {
  mcp,
  type McpHttpOptions,
  type McpOptions,
  type McpRequest,
  type McpServer,
  type McpShimOptions,
  type WebSocketClass,
} from "./mcp.js";
export { type McpCallOptions, McpClient, type McpReadOptions } from "./mcp-client.js";
export type { McpApp, McpAppPolicy } from "./mcp-app.js";
export type { AgentTool } from "./mcp-connection.js";
export type {
  McpElicitation,
  McpElicitationResult,
  McpFormRequest,
  McpHandlers,
  McpQuestionContext,
  McpRoot,
  McpSamplingRequest,
  McpSamplingResult,
  McpUrlRequest,
} from "./mcp-handlers.js";
export type { McpNativeMessagingOptions } from "./mcp-native-messaging.js";
export type { McpPairing, McpPairOptions } from "./mcp-pairing.js";
export type { McpPort } from "./mcp-port.js";
export { sampleWith, type SampleOptions } from "./mcp-sampling.js";
export type {
  McpCompletion,
  McpCompletionReference,
  McpContent,
  McpEraRecord,
  McpEvent,
  McpIcon,
  McpLogLevel,
  McpProgress,
  McpPrompt,
  McpPromptResult,
  McpResource,
  McpResourceContents,
  McpResourceTemplate,
  McpResult,
  McpServerInfo,
  McpTool,
  McpToolAnnotations,
} from "./mcp-protocol.js";
export type {
  AssistantMessage,
  BytesPart,
  FilePart,
  Input,
  Message,
  ModelReference,
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
  llamacpp,
  lmstudio,
  minimax,
  ollama,
  openai,
  openaiCompatible,
  openrouter,
  type Prices,
  type ProviderOptions,
  qwen,
  vertex,
  type VertexOptions,
  vllm,
  xai,
  zai,
} from "./model.js";
export type {
  OAuthAssertionRequest,
  OAuthClient,
  OAuthConsent,
  OAuthIdentityProvider,
  OAuthOptions,
  OAuthStore,
} from "./oauth.js";
export type { AgentOptions, Limits, RunOptions } from "./options.js";
export type { OutputOf, PartialOutput } from "./output.js";
export type { Approve, Run, RunResult, SteerOutcome, Step } from "./run.js";
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
export type { QueuedMessage, QueuedMessages, TreeEntry } from "./saved-text.js";
export { readServerSentEvents, type ServerSentEvent } from "./server-sent-events.js";
export type {
  PendingApproval,
  Session,
  SessionSnapshot,
  SessionState,
  SessionStatus,
} from "./session.js";
export { type Skill, skill, skillFromUrl } from "./skill.js";
export type { SessionStore, StoredSession } from "./store.js";
export {
  type ClientTool,
  type ClientToolDefinition,
  type MaybePromise,
  subAgent,
  type SubAgentDefinition,
  type SubAgentTool,
  tool,
  type Tool,
  type ToolBase,
  type ToolContext,
  type ToolDefinition,
  toolOutput,
  type ToolOutput,
  type ToolSet,
} from "./tool.js";
