/** The glue that wasm-bindgen writes, which the build puts in place of `#bindings`. */
import type { Core } from "../core.js";

export declare const AgentHandle: Core["AgentHandle"];
export declare const CancelHandle: Core["CancelHandle"];
export declare const McpHandle: Core["McpHandle"];
export declare const SseHandle: Core["SseHandle"];
export default function initialise(source: { module_or_path: unknown }): Promise<unknown>;
