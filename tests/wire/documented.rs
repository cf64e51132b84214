//! Streams as the vendors document them, one a provider: reasoning, text, a call with input and one without.
//!
//! Each names its source in its first line.

use crablet::model::{Model, anthropic, azure, bedrock, gemini, openai_chat, openai_responses, vertex};

use super::frames;

/// A stream of a provider.
pub(crate) struct Documented {
    pub(crate) name: &'static str,
    pub(crate) model: Model,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn all() -> Vec<Documented> {
    let stream = |name, model, text: &str| Documented { name, model, bytes: text.as_bytes().to_vec() };
    let responses = include_str!("documented/openai-responses.sse");
    vec![
        stream("anthropic", anthropic::model("m"), include_str!("documented/anthropic.sse")),
        stream(
            "openai-chat",
            openai_chat::model(openai_chat::Profile::DeepSeek, "m"),
            include_str!("documented/openai-chat.sse"),
        ),
        stream("openai-responses", openai_responses::model("m"), responses),
        stream(
            "azure-chat",
            azure::chat_model("https://r.openai.azure.com", "m"),
            include_str!("documented/azure-chat.sse"),
        ),
        stream("azure-responses", azure::model("https://r.openai.azure.com", "m"), responses),
        stream("gemini", gemini::model("m"), include_str!("documented/gemini.sse")),
        stream("vertex", vertex::model("p", "global", "m"), include_str!("documented/vertex.sse")),
        Documented {
            name: "bedrock",
            model: bedrock::model("us-east-1", "m"),
            bytes: framed(include_str!("documented/bedrock.events")),
        },
    ]
}

fn framed(events: &str) -> Vec<u8> {
    let events = events.lines().filter_map(|line| line.split_once(' ')).filter(|(name, _)| *name != "#");
    events.flat_map(|(name, payload)| frames::frame(name, payload)).collect()
}
