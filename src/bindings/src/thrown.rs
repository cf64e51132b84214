//! Errors on their way to JavaScript, where `fromCore` in `src/js/error.ts` makes a `CrabletError` of them.

use crablet::Error;
use wasm_bindgen::JsValue;

/// An error as the object `ErrorInfo` of the facade.
pub(crate) fn thrown(error: Error) -> JsValue {
    // An error is text and numbers, which always have a JavaScript form.
    serde_wasm_bindgen::to_value(&error).unwrap_or_default()
}
