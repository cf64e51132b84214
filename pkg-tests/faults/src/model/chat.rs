//! OpenAI Chat Completions.

use serde_json::{Value, json};

use super::Event;
use crate::script::Answer;

pub(super) fn events(answer: &Answer) -> Vec<Event> {
    let mut events: Vec<Event> = answer
        .text
        .iter()
        .map(|piece| Event::data(&chunk(json!({ "role": "assistant", "content": piece }), None)))
        .collect();
    for (index, call) in answer.calls.iter().enumerate() {
        let start = json!({ "index": index, "id": call.id, "type": "function", "function": { "name": call.name, "arguments": "" } });
        events.push(Event::data(&chunk(json!({ "tool_calls": [start] }), None)).of_part(index));
        for piece in &call.input {
            let delta = json!({ "index": index, "function": { "arguments": piece } });
            events.push(Event::data(&chunk(json!({ "tool_calls": [delta] }), None)).of_part(index));
        }
    }
    let reason = if answer.calls.is_empty() { "stop" } else { "tool_calls" };
    events.push(Event::data(&chunk(json!({}), Some(reason))).completing());
    events.push(Event { bytes: b"data: [DONE]\n\n".to_vec(), part: None, completes: true });
    events
}

fn chunk(delta: Value, reason: Option<&str>) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "faulty",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
    })
}
