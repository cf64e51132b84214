//! Errors on their way to JavaScript, where `fromCore` in `src/js/error.ts` makes a `CrabletError` of them.

use crablet::Error;
use js_sys::JSON;
use wasm_bindgen::JsValue;

/// An error as the object `ErrorInfo` of the facade.
pub(crate) fn thrown(error: Error) -> JsValue {
    // An error is text and numbers, which always have a JSON form.
    serde_json::to_string(&error).ok().and_then(|text| JSON::parse(&text).ok()).unwrap_or_default()
}
