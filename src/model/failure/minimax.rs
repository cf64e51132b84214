//! MiniMax's own form of a failure, which comes with status 200 (platform.minimax.io/docs, "Error codes").

use crate::json::Object;

/// The number, unless all is well.
pub(super) fn refusal(object: &Object<'_>) -> Option<u64> {
    object.object("base_resp")?.integer("status_code").filter(|code| *code != 0)
}

/// The words of others for MiniMax's numbers.
pub(super) const fn word(code: u64) -> &'static str {
    match code {
        1002 | 1039 | 2045 => "rate_limited",
        1004 | 2049 => "invalid_api_key",
        1008 | 2056 => "insufficient_balance",
        1026 | 1027 => "content_filter",
        1000..=1999 => "server_error",
        _ => "invalid_request",
    }
}

/// The sentence that goes with it.
pub(super) fn message(object: &Object<'_>) -> Option<String> {
    object.object("base_resp")?.string("status_msg")
}
