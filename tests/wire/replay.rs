//! An answer decoded and assembled, as the driver and the session do it.

use crablet::Millis;
use crablet::model::{
    Access, Answer, Assembler, EncodedCache, HttpRequest, Model, ModelEvent, ModelRequest, Part, ResponseHead,
    ToolInput, Wire, anthropic, bedrock, gemini, openai_chat, openai_responses,
};
use serde_json::{Value, json};

/// A model of a wire by its name, or `None` for a wire that is not built yet.
pub(crate) fn model(wire: &str, provider: &str) -> Option<Model> {
    match wire {
        "anthropic" => Some(anthropic::model("m")),
        "bedrock" => Some(bedrock::model("us-east-1", "m")),
        "gemini" => Some(gemini::model("gemini-3-flash-preview")),
        "openai-responses" | "responses" => Some(openai_responses::model("m")),
        "openai-chat" => Some(openai_chat::model(openai_chat::Profile::from_name(provider), "m")),
        _ => None,
    }
}

pub(crate) fn wire(model: &Model) -> &'static dyn Wire {
    match &model.access {
        Access::Http { wire, .. } => *wire,
        _ => panic!("no wire"),
    }
}

/// The events of an answer that arrives in these chunks.
pub(crate) fn events<'chunk>(
    model: &Model,
    head: &ResponseHead,
    chunks: impl IntoIterator<Item = &'chunk [u8]>,
) -> Vec<ModelEvent> {
    let mut decoder = wire(model).decoder(&ModelRequest::new(model.clone()), head);
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk, &mut events);
    }
    decoder.finish(&mut events);
    events
}

pub(crate) fn assemble(events: &[ModelEvent]) -> Answer {
    let mut assembler = Assembler::new();
    for event in events {
        assembler.push(event);
    }
    assembler.finish()
}

/// The same events, whatever the chunks: neighbouring deltas of one block are joined.
pub(crate) fn joined(events: Vec<ModelEvent>) -> Vec<ModelEvent> {
    let mut joined: Vec<ModelEvent> = Vec::new();
    for event in events {
        match (joined.last_mut(), &event) {
            (Some(ModelEvent::TextDelta { block, text }), ModelEvent::TextDelta { block: same, text: more })
                if block == same =>
            {
                text.push_str(more);
            }
            _ => joined.push(event),
        }
    }
    joined
}

pub(crate) fn body(request: &ModelRequest) -> Value {
    serde_json::from_slice(&encoded(request).body).unwrap()
}

pub(crate) fn encoded(request: &ModelRequest) -> HttpRequest {
    let mut http = wire(&request.model).encode(request, &mut EncodedCache::default()).unwrap();
    wire(&request.model).authorize(&mut http, &crablet::model::Credentials::Key("key-1".into()), Millis(0)).unwrap();
    http
}

/// Whether an event list ends as the contract says: one last event, at the end, and nothing behind it.
pub(crate) fn ends_once(events: &[ModelEvent]) -> bool {
    events.iter().filter(|event| event.is_last()).count() == 1 && events.last().is_some_and(ModelEvent::is_last)
}

/// An answer in the vocabulary of the cases and the recordings.
pub(crate) fn observed(answer: &Answer) -> Value {
    let mut text = String::new();
    let mut refusal = String::new();
    let mut reasoning = String::new();
    let mut calls = Vec::new();
    let mut details = Vec::new();
    let mut blocks = Vec::new();
    let (mut citations, mut signatures, mut encrypted) = (0, 0, 0);
    for part in &answer.content {
        match part {
            Part::Text { text: more, replay } => {
                let replay: Value = replay.as_ref().map_or(Value::Null, |raw| raw.read().unwrap());
                signatures += usize::from(replay.get("thoughtSignature").is_some());
                if replay.get("refusal").is_some() {
                    refusal.push_str(more);
                } else {
                    blocks.push("text".to_owned());
                    text.push_str(more);
                }
            }
            Part::Reasoning { text: more, replay } => {
                let replay: Value = replay.as_ref().map_or(Value::Null, |raw| raw.read().unwrap());
                blocks.push(if replay.get("redacted").is_some() { "redacted_thinking" } else { "thinking" }.to_owned());
                encrypted += usize::from(replay.get("encrypted_content").is_some_and(|content| !content.is_null()));
                signatures += usize::from(replay.get("signature").or_else(|| replay.get("thoughtSignature")).is_some());
                details.extend(replay.get("reasoning_details").and_then(Value::as_array).cloned().unwrap_or_default());
                reasoning.push_str(more);
            }
            Part::ToolCall(call) => {
                blocks.push("tool_use".to_owned());
                signatures +=
                    usize::from(call.replay.as_ref().is_some_and(|raw| raw.as_str().contains("thoughtSignature")));
                calls.push(match &call.input {
                    ToolInput::Json(input) => {
                        json!({"id": call.call_id, "name": call.tool_name, "arguments": input.read::<Value>().unwrap()})
                    }
                    ToolInput::Malformed { text, .. } => json!({
                        "id": call.call_id,
                        "name": call.tool_name,
                        "arguments": null,
                        "invalid": true,
                        "cutBeforeInput": text.is_empty(),
                    }),
                });
            }
            Part::Source(_) => citations += 1,
            Part::Provider { kind, replay } => {
                signatures += usize::from(replay.as_str().contains("\"thoughtSignature\""));
                blocks.push(kind.clone());
            }
            _ => {}
        }
    }
    let usage = &answer.usage;
    json!({
        "text": text,
        "refusal": refusal,
        "reasoning": reasoning,
        "toolCalls": calls,
        "stopReason": answer.stop_reason.as_str().replace('-', "_"),
        "stopReasonRaw": answer.stop_word,
        "usage": {
            "input": usage.input,
            "output": usage.output,
            "cacheRead": usage.cache_read,
            "cacheWrite": usage.cache_write,
            "reasoning": usage.reasoning,
        },
        "error": answer.error.as_ref().map(|error| json!({
            "kind": error.kind().as_str().replace('-', "_"),
            "retryable": error.is_retryable(),
            "status": error.status(),
            "code": error.code(),
            "message": error.message(),
            "retry_after_s": error.retry_after().map(|milliseconds| milliseconds as f64 / 1000.0),
        })),
        "replay": {"reasoning_details": details},
        "citations": citations,
        "signatures": signatures,
        "encryptedReasoning": encrypted,
        "blocks": blocks,
    })
}
