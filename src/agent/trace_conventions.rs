//! The names that OpenTelemetry's conventions for generative AI have for what a trace tells.

use serde::Serialize;

use super::trace::Attribute;
use crate::json::RawJson;
use crate::model::{Body, Content, Message, Part, ToolInput, Usage};

/// The conventions' own name of a provider, where it differs.
pub(super) fn provider_name(provider: &str) -> &str {
    match provider {
        "azure" => "azure.ai.openai",
        "bedrock" => "aws.bedrock",
        "gemini" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "vertex" => "gcp.vertex_ai",
        "xai" => "x_ai",
        other => other,
    }
}

/// What was counted, by the names of the conventions.
pub(super) fn usage(usage: &Usage) -> impl Iterator<Item = (&'static str, Attribute)> {
    let counts = [
        ("gen_ai.usage.input_tokens", usage.input),
        ("gen_ai.usage.output_tokens", usage.output),
        ("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write),
        ("gen_ai.usage.reasoning.output_tokens", usage.reasoning),
    ];
    let cost = usage.cost.map(|cost| ("crablet.usage.cost", Attribute::Number(cost.as_f64())));
    counts.into_iter().filter_map(|(name, count)| Some((name, Attribute::Integer(count?)))).chain(cost)
}

/// The texts of a result.
pub(super) fn joined(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|content| match content {
        Content::Text(text) => Some(text.as_str()),
        Content::File(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// A message in the form of the conventions: `{role, parts}` as JSON.
pub(super) fn in_conventions(given: &Message) -> String {
    match &given.body {
        Body::User(user) => message("user", &user.content.iter().map(ConventionPart::of).collect::<Vec<_>>()),
        Body::Assistant(answer) => {
            let parts = answer.content.iter().map(|part| match part {
                Part::Text { text, .. } => ConventionPart::text(text),
                Part::Reasoning { text, .. } => ConventionPart { r#type: "reasoning", ..ConventionPart::text(text) },
                Part::ToolCall(call) => ConventionPart {
                    r#type: "tool_call",
                    id: Some(call.call_id.as_str()),
                    name: Some(&call.tool_name),
                    arguments: match &call.input {
                        ToolInput::Json(input) => Some(input),
                        ToolInput::Malformed { .. } => None,
                    },
                    ..ConventionPart::default()
                },
                _ => ConventionPart { r#type: "other", ..ConventionPart::default() },
            });
            message("assistant", &parts.collect::<Vec<_>>())
        }
        Body::Tool(_) => message("tool", &[]),
    }
}

/// A message of these parts.
pub(super) fn message(role: &str, parts: &[ConventionPart<'_>]) -> String {
    #[derive(Serialize)]
    struct Said<'said> {
        role: &'said str,
        parts: &'said [ConventionPart<'said>],
    }
    // Text and checked JSON can always be written.
    serde_json::to_string(&Said { role, parts }).unwrap_or_default()
}

/// A part of a message.
#[derive(Debug, Default, Serialize)]
pub(super) struct ConventionPart<'said> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'said str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'said str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'said str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'said RawJson>,
}

impl<'said> ConventionPart<'said> {
    fn of(content: &'said Content) -> Self {
        match content {
            Content::Text(text) => Self::text(text),
            Content::File(_) => Self { r#type: "file", ..Self::default() },
        }
    }

    pub(super) fn text(content: &'said str) -> Self {
        Self { r#type: "text", content: Some(content), ..Self::default() }
    }
}
