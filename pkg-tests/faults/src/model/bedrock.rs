//! Amazon Bedrock's ConverseStream: events are frames of bytes with checksums.

use serde_json::{Value, json};

use self::frames::frame;
use super::Event;
use crate::script::Answer;

#[path = "../../../../tests/wire/frames.rs"]
mod frames;

pub(super) fn events(answer: &Answer) -> Vec<Event> {
    let mut events = vec![event("messageStart", &json!({ "role": "assistant" }))];
    // A text has no start.
    let delta = |index: usize, delta: Value| {
        event("contentBlockDelta", &json!({ "contentBlockIndex": index, "delta": delta })).of_part(index)
    };
    let stop = |index: usize| event("contentBlockStop", &json!({ "contentBlockIndex": index })).of_part(index);
    events.extend(answer.text.iter().map(|piece| delta(0, json!({ "text": piece }))));
    events.push(stop(0));
    for (index, call) in (1..).zip(&answer.calls) {
        let start = json!({ "toolUse": { "toolUseId": call.id, "name": call.name } });
        let start = json!({ "contentBlockIndex": index, "start": start });
        events.push(event("contentBlockStart", &start).of_part(index));
        events.extend(call.input.iter().map(|piece| delta(index, json!({ "toolUse": { "input": piece } }))));
        events.push(stop(index));
    }
    let reason = if answer.calls.is_empty() { "end_turn" } else { "tool_use" };
    events.push(event("messageStop", &json!({ "stopReason": reason })).completing());
    let usage = json!({ "inputTokens": 5, "outputTokens": 20, "totalTokens": 25 });
    events.push(event("metadata", &json!({ "usage": usage, "metrics": { "latencyMs": 1 } })).completing());
    events
}

fn event(name: &str, payload: &Value) -> Event {
    Event { bytes: frame(name, &payload.to_string()), part: None, completes: false }
}
