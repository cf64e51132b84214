//! Anthropic Messages.

use serde_json::json;

use super::Event;
use crate::script::Answer;

pub(super) fn events(answer: &Answer) -> Vec<Event> {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "faulty", "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": { "input_tokens": 5, "output_tokens": 1 },
    });
    let mut events = vec![Event::named(&json!({ "type": "message_start", "message": message }))];
    let mut index = 0;
    let mut block = |start, deltas: Vec<_>| {
        let mut block = vec![json!({ "type": "content_block_start", "index": index, "content_block": start })];
        block.extend(
            deltas.into_iter().map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta })),
        );
        block.push(json!({ "type": "content_block_stop", "index": index }));
        index += 1;
        block.iter().map(|event| Event::named(event).of_part(index)).collect::<Vec<_>>()
    };
    let text = answer.text.iter().map(|piece| json!({ "type": "text_delta", "text": piece })).collect();
    events.extend(block(json!({ "type": "text", "text": "" }), text));
    for call in &answer.calls {
        let input =
            call.input.iter().map(|piece| json!({ "type": "input_json_delta", "partial_json": piece })).collect();
        events.extend(block(json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} }), input));
    }
    let reason = if answer.calls.is_empty() { "end_turn" } else { "tool_use" };
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    let end = json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 20 } });
    events.push(Event::named(&end).completing());
    events.push(Event::named(&json!({ "type": "message_stop" })).completing());
    events
}
