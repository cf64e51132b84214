//! Errors on their way to JavaScript, where `fromCore` in `src/js/error.ts` makes a `CrabletError` of them.

use crablet::Error;
use wasm_bindgen::JsValue;

/// An error as its JSON text.
pub(crate) fn thrown(error: Error) -> JsValue {
    JsValue::from_str(&serde_json::to_string(&error).unwrap_or_default())
}
