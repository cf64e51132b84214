//! OpenAI Responses.

use serde_json::{Value, json};

use super::Event;
use crate::script::Answer;

/// An answer is a row of items that the model wrote.
pub(super) fn answers_in(request: &Value) -> usize {
    let mut answers = 0;
    let mut within = false;
    for item in request["input"].as_array().into_iter().flatten() {
        let is_answer = item["role"] == "assistant" || item["type"] == "function_call" || item["type"] == "reasoning";
        answers += usize::from(is_answer && !within);
        within = is_answer;
    }
    answers
}

pub(super) fn events(answer: &Answer) -> Vec<Event> {
    let response = |status: &str, output: &[Value]| {
        json!({ "id": "resp_1", "object": "response", "status": status, "model": "faulty", "output": output,
                "usage": { "input_tokens": 5, "output_tokens": 20, "total_tokens": 25 } })
    };
    let mut written = vec![(json!({ "type": "response.created", "response": response("in_progress", &[]) }), None)];
    let mut output = Vec::new();
    let text = answer.text.concat();
    let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
    let message = |status: &str, content: Vec<Value>| json!({ "type": "message", "id": "msg_0", "role": "assistant", "status": status, "content": content });
    let place = json!({ "item_id": "msg_0", "output_index": 0, "content_index": 0 });
    written.push((
        json!({ "type": "response.output_item.added", "output_index": 0, "item": message("in_progress", vec![]) }),
        Some(0),
    ));
    written.push((joined(&place, json!({ "type": "response.content_part.added", "part": part("") })), Some(0)));
    for piece in &answer.text {
        written.push((joined(&place, json!({ "type": "response.output_text.delta", "delta": piece })), Some(0)));
    }
    written.push((joined(&place, json!({ "type": "response.output_text.done", "text": text })), Some(0)));
    written.push((joined(&place, json!({ "type": "response.content_part.done", "part": part(&text) })), Some(0)));
    output.push(message("completed", vec![part(&text)]));
    written.push((json!({ "type": "response.output_item.done", "output_index": 0, "item": output[0] }), Some(0)));
    for (index, call) in (1..).zip(&answer.calls) {
        let item = |status: &str, arguments: &str| {
            json!({ "type": "function_call", "id": format!("fc_{index}"), "call_id": call.id, "name": call.name,
                    "arguments": arguments, "status": status })
        };
        let place = json!({ "item_id": format!("fc_{index}"), "output_index": index });
        let input = call.input.concat();
        written.push((
            json!({ "type": "response.output_item.added", "output_index": index, "item": item("in_progress", "") }),
            Some(index),
        ));
        for piece in &call.input {
            let delta = json!({ "type": "response.function_call_arguments.delta", "delta": piece });
            written.push((joined(&place, delta), Some(index)));
        }
        let done = json!({ "type": "response.function_call_arguments.done", "arguments": input });
        written.push((joined(&place, done), Some(index)));
        output.push(item("completed", &input));
        written.push((
            json!({ "type": "response.output_item.done", "output_index": index, "item": output[index] }),
            Some(index),
        ));
    }
    written.push((json!({ "type": "response.completed", "response": response("completed", &output) }), None));
    let last = written.len() - 1;
    let event = |(number, (value, part)): (usize, (Value, Option<usize>))| {
        let value = joined(&value, json!({ "sequence_number": number }));
        Event { part, completes: number == last, ..Event::named(&value) }
    };
    written.into_iter().enumerate().map(event).collect()
}

/// The members of both objects.
fn joined(left: &Value, right: Value) -> Value {
    let mut whole = left.as_object().cloned().unwrap_or_default();
    whole.extend(right.as_object().cloned().unwrap_or_default());
    Value::Object(whole)
}
