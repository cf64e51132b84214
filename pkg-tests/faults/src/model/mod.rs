//! A model endpoint of several wire protocols: reads how far a conversation is, and writes the next answer as events.

mod anthropic;
mod bedrock;
mod chat;
mod gemini;
mod responses;

use serde_json::Value;

use crate::script::{Answer, Wire};

/// One event of a streamed answer.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// As it is written.
    pub(crate) bytes: Vec<u8>,
    /// The independent part of the answer that it belongs to, where the protocol says which by a number: events of two
    /// such parts may change places.
    pub(crate) part: Option<usize>,
    /// Whether the answer is whole once this has come.
    pub(crate) completes: bool,
}

impl Event {
    fn data(value: &Value) -> Self {
        Self { bytes: format!("data: {value}\n\n").into_bytes(), part: None, completes: false }
    }

    /// With a line that names the event, as the type in its data does.
    fn named(value: &Value) -> Self {
        let name = value["type"].as_str().unwrap_or_default();
        Self { bytes: format!("event: {name}\ndata: {value}\n\n").into_bytes(), part: None, completes: false }
    }

    fn of_part(self, part: usize) -> Self {
        Self { part: Some(part), ..self }
    }

    fn completing(self) -> Self {
        Self { completes: true, ..self }
    }
}

/// How often the model has answered in this request.
pub(crate) fn answers_in(wire: Wire, request: &Value) -> usize {
    match wire {
        Wire::Chat | Wire::Anthropic | Wire::Bedrock => count_role(&request["messages"], "assistant"),
        Wire::Responses => responses::answers_in(request),
        Wire::Gemini => count_role(&request["contents"], "model"),
    }
}

fn count_role(messages: &Value, role: &str) -> usize {
    messages.as_array().map_or(0, |messages| messages.iter().filter(|message| message["role"] == role).count())
}

/// The events of an answer.
pub(crate) fn events(wire: Wire, answer: &Answer) -> Vec<Event> {
    match wire {
        Wire::Chat => chat::events(answer),
        Wire::Anthropic => anthropic::events(answer),
        Wire::Responses => responses::events(answer),
        Wire::Gemini => gemini::events(answer),
        Wire::Bedrock => bedrock::events(answer),
    }
}

/// The media type of an answer.
pub(crate) const fn media_type(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat | Wire::Anthropic | Wire::Responses | Wire::Gemini => "text/event-stream",
        Wire::Bedrock => "application/vnd.amazon.eventstream",
    }
}

/// How many of the last bytes of an event may be missing without any harm: of a text the empty line behind it.
pub(crate) const fn idle_bytes(wire: Wire) -> usize {
    match wire {
        Wire::Chat | Wire::Anthropic | Wire::Responses | Wire::Gemini => 2,
        Wire::Bedrock => 0,
    }
}
