//! Each stream twice: as it is, so that deltas are scanned, and changed so that every payload is walked.

use crablet::model::ModelEvent;
use serde_json::{Map, Value};

/// Payloads that begin an answer and open blocks of every kind; each wire takes its own and skips the others.
pub(crate) const BEGINNING: &[&str] = &[
    r#"{"id":"c","type":"message_start","message":{"id":"m"},"choices":[{"index":0,"delta":{"role":"assistant"}}]}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text"}}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking"}}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"i","name":"n","input":{}}}"#,
    r#"{"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"i","name":"n"}}"#,
];

/// The stream of these payloads, and the same for the walk alone.
pub(crate) fn streams<'text>(payloads: impl IntoIterator<Item = &'text str>) -> [String; 2] {
    let mut streams = [String::new(), String::new()];
    for payload in payloads {
        let [scanned, walked] = &mut streams;
        scanned.push_str(&format!("data: {payload}\n\n"));
        walked.push_str(&format!("data: {}\n\n", unscannable(payload)));
    }
    streams
}

/// Whether the answers are the same. Of a malformed payload the sentence differs, since it quotes the payload.
pub(crate) fn is_same(scanned: &[ModelEvent], walked: &[ModelEvent]) -> bool {
    let is_alike = |pair: (&ModelEvent, &ModelEvent)| match pair {
        (ModelEvent::Failed(one), ModelEvent::Failed(other)) => one.kind() == other.kind(),
        (one, other) => one == other,
    };
    scanned.len() == walked.len() && scanned.iter().zip(walked).all(is_alike)
}

/// Gives an object one member more, of a kind that the scanner leaves to the walk and the walk skips. What is no JSON
/// stays none, with a character that no scanner goes past.
fn unscannable(payload: &str) -> String {
    // JSON's own white space only: other characters of the kind make a payload that is none.
    let payload = payload.trim_matches([' ', '\t', '\n', '\r']);
    match serde_json::from_str::<Map<String, Value>>(payload) {
        Ok(members) if !members.is_empty() => payload.replacen('{', "{\"\":[0],", 1),
        _ if serde_json::from_str::<serde::de::IgnoredAny>(payload).is_err() && payload.starts_with('{') => {
            format!("{payload}!")
        }
        _ => payload.to_owned(),
    }
}
