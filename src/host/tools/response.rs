use serde_json::json;

use crate::agent::ToolOutput;
use crate::json::RawJson;

/// An answer as a model reads it: the status, the type, and the body where it is text. A status of 400 and more is a failure.
pub(crate) fn response_output(status: u16, content_type: &str, body: &[u8], is_cut: bool) -> ToolOutput {
    let kind = if content_type.is_empty() { String::new() } else { format!(", {content_type}") };
    let text = match body.len() {
        0 => "[no body]".to_owned(),
        size if body.iter().take(LOOKED_AT).any(|byte| *byte == 0) => format!("[{size} bytes that are no text]"),
        _ => String::from_utf8_lossy(whole_characters(body, is_cut)).into_owned(),
    };
    let cut = if is_cut { format!("\n[cut after {} bytes]", body.len()) } else { String::new() };
    let details = json!({ "status": status, "contentType": content_type, "bytes": body.len(), "isCut": is_cut });
    ToolOutput {
        details: RawJson::from_value(&details).ok(),
        is_error: status >= 400,
        ..ToolOutput::text(format!("HTTP {status}{kind}\n\n{text}{cut}"))
    }
}

/// Adds a chunk to what was read of a body; `false` when there is more than may be read.
pub(crate) fn add_chunk(body: &mut Vec<u8>, chunk: &[u8], max_bytes: usize) -> bool {
    let taken = chunk.get(..max_bytes.saturating_sub(body.len())).unwrap_or(chunk);
    body.extend_from_slice(taken);
    taken.len() == chunk.len()
}

/// Without a character that the limit cut in two.
fn whole_characters(body: &[u8], is_cut: bool) -> &[u8] {
    match std::str::from_utf8(body) {
        Err(error) if is_cut && error.error_len().is_none() => body.get(..error.valid_up_to()).unwrap_or(body),
        _ => body,
    }
}

/// How much of a body is looked at to tell text from other data.
const LOOKED_AT: usize = 8_192;
