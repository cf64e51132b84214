/** The glue that wasm-bindgen writes, which the build puts in place of `#bindings`. */
import type { Core } from "../core.js";

export declare const AgentHandle: Core["AgentHandle"];
export declare const CancelHandle: Core["CancelHandle"];
export declare const connectMcp: Core["connectMcp"];
export default function initialise(source: { module_or_path: unknown }): Promise<unknown>;
