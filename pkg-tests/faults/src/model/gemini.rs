//! Gemini: calls come whole, and parts have no numbers.

use serde_json::{Value, json};

use super::Event;
use crate::script::Answer;

pub(super) fn events(answer: &Answer) -> Vec<Event> {
    let mut parts: Vec<Value> = answer.text.iter().map(|piece| json!({ "text": piece })).collect();
    for call in &answer.calls {
        let input: Value = serde_json::from_str(&call.input.concat()).unwrap_or_default();
        parts.push(json!({ "functionCall": { "id": call.id, "name": call.name, "args": input } }));
    }
    let last = parts.len() - 1;
    let chunk = |(number, part): (usize, Value)| {
        let mut candidate = json!({ "content": { "role": "model", "parts": [part] }, "index": 0 });
        if number == last {
            candidate["finishReason"] = json!("STOP");
        }
        let usage = json!({ "promptTokenCount": 5, "candidatesTokenCount": 20, "totalTokenCount": 25 });
        let chunk = json!({ "candidates": [candidate], "usageMetadata": usage, "modelVersion": "faulty" });
        Event { completes: number == last, ..Event::data(&chunk) }
    };
    parts.into_iter().enumerate().map(chunk).collect()
}
