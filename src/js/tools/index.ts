/**
 * Tools that an agent opts into: files, fetch, a scratchpad, and the operations of an OpenAPI document.
 *
 * @packageDocumentation
 */
export { directoryFiles, opfsFiles } from "./directory-files.js";
export { type FetchInput, fetchTool, type FetchToolOptions } from "./fetch.js";
export {
  type FileLimits,
  fileTools,
  type FileToolsOptions,
  type ReadingTools,
  readingTools,
  type WritingTools,
} from "./files.js";
export { type FileEntry, type FileStore, tooLarge } from "./file-store.js";
export { folderFiles } from "./folder-files.js";
export { MemoryFiles } from "./memory-files.js";
export type { ApiOperation } from "./openapi/operation.js";
export { type Authorization, type OpenApiOptions, type OpenApiTools, openApiTools } from "./openapi/tools.js";
export { Scratchpad, type ScratchpadTools, scratchpadTools } from "./scratchpad.js";
