use wasm_bindgen::JsValue;

use super::property;
use crate::error::{Error, ErrorKind};

/// What a JavaScript function threw or a promise was rejected with, as an [`Error`].
///
/// Tolerant of anything: an `Error`, a `DOMException`, a text, `undefined`, an object whose getters throw. `AbortError`
/// becomes `aborted`, `TimeoutError` becomes `timeout`, a `CrabletError` keeps its kind and its wait, everything else is of the
/// kind `otherwise`. `doing` says what failed, such as `could not reach https://example.com`.
pub fn error_from_rejection(value: &JsValue, otherwise: ErrorKind, doing: &str) -> Error {
    let kind = match property(value, "name").as_string().as_deref() {
        Some("AbortError") => ErrorKind::Aborted,
        Some("TimeoutError") => ErrorKind::Timeout,
        _ => property(value, "kind").as_string().and_then(|kind| ErrorKind::from_name(&kind)).unwrap_or(otherwise),
    };
    let error = match describe(value) {
        Some(reason) => Error::new(kind, format!("{doing}: {reason}")),
        None => Error::new(kind, doing.to_owned()),
    };
    // A function of the caller's knows how long its provider asked to be left alone.
    match property(value, "retryAfterMs").as_f64() {
        Some(wait) if wait >= 0.0 => error.with_retry_after(wait as u64),
        _ => error,
    }
}

/// The sentence of what a JavaScript function threw, as tolerant as [`error_from_rejection`].
pub fn message_of_rejection(value: &JsValue) -> String {
    describe(value).unwrap_or_else(|| "it failed without saying why".to_owned())
}

/// The message of a thrown value and of its cause, where Node keeps the real reason of a failed fetch.
fn describe(value: &JsValue) -> Option<String> {
    let own = message(value)?;
    let cause = property(value, "cause");
    Some(match message(&cause).or_else(|| property(&cause, "code").as_string()) {
        Some(cause) if cause != own => format!("{own} ({cause})"),
        _ => own,
    })
}

fn message(value: &JsValue) -> Option<String> {
    let text = value.as_string().or_else(|| property(value, "message").as_string())?;
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    Some(match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    })
}

/// Characters kept of a foreign message: enough to read, too few to flood a log.
const MAX_MESSAGE: usize = 500;
