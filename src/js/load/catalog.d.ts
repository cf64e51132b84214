import type { ModelInfo } from "../models.js";

/** `src/model/catalog.json`, which the Rust crate reads too. */
declare const catalog: { readonly version: 1; readonly models: readonly ModelInfo[] };
export default catalog;
