//! Connections that drop at the boundaries of events.

use crablet::ErrorKind;
use crablet::model::{Model, ModelEvent, ResponseHead, StopReason};
use serde_json::Value;

use super::replay;

/// Where an event of an answer ends: at a frame of Bedrock, or at an empty line; none for a document.
pub(crate) fn boundaries(whole: &[u8]) -> Vec<usize> {
    match whole.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(0) => frame_ends(whole),
        None | Some(b'{' | b'[') => Vec::new(),
        Some(_) => {
            let is_end =
                |at: &usize| [b"\n\n".as_slice(), b"\r\r", b"\n\r\n"].iter().any(|end| whole[..*at].ends_with(end));
            (1..=whole.len()).filter(is_end).collect()
        }
    }
}

/// A frame begins with its length.
fn frame_ends(whole: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    while let Some(length) = whole.get(at..at + 4) {
        at += u32::from_be_bytes(length.try_into().unwrap()) as usize;
        ends.push(at);
    }
    ends
}

/// What is wrong about the answers that end at a boundary: a success that the whole answer is not, or before the provider said
/// why it ends; a call that could run and is not in the whole answer; an end that is no truncation.
pub(crate) fn unsound(model: &Model, head: &ResponseHead, whole: &[u8]) -> Vec<String> {
    let full = replay::assemble(&replay::events(model, head, [whole]));
    let known = calls(&full);
    let mut found = Vec::new();
    let mut succeeded = false;
    for end in boundaries(whole) {
        let events = replay::events(model, head, [&whole[..end]]);
        let answer = replay::assemble(&events);
        match events.last() {
            Some(ModelEvent::Stop { .. }) => {
                succeeded = true;
                if answer.stop_reason != full.stop_reason {
                    found.push(format!("cut at {end}: stop reason {}", answer.stop_reason.as_str()));
                }
                if answer.stop_word.is_none() && end < whole.len() && full.stop_word.is_some() {
                    found.push(format!("cut at {end}: a success before the provider said why it ends"));
                }
            }
            Some(ModelEvent::Failed(error)) => {
                let is_cut = error.kind() == ErrorKind::StreamTruncated || full.stop_reason == StopReason::Error;
                if succeeded || !is_cut {
                    found.push(format!("cut at {end}: {error}"));
                }
            }
            _ => found.push(format!("cut at {end}: no last event")),
        }
        if let Some(call) = calls(&answer).iter().find(|call| !known.contains(call)) {
            found.push(format!("cut at {end}: the call {call} could run"));
        }
    }
    found
}

/// The calls that could run.
fn calls(answer: &crablet::model::Answer) -> Vec<Value> {
    let calls = replay::observed(answer)["toolCalls"].as_array().cloned().unwrap_or_default();
    calls.into_iter().filter(|call| call.get("invalid").is_none()).collect()
}
