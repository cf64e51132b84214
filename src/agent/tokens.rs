//! Token counts estimated from text, for providers that report none and for messages that were not sent yet.

use crate::model::{Body, Content, Message, Part, ToolInput, ToolSpec};

/// About how many tokens a message takes.
pub(super) fn of_message(message: &Message) -> u64 {
    of_body(&message.body)
}

/// About how many tokens a message with this body takes.
pub(super) fn of_body(body: &Body) -> u64 {
    let content = match body {
        Body::User(user) => user.content.iter().map(of_content).sum(),
        Body::Assistant(assistant) => assistant.content.iter().map(of_part).sum::<u64>(),
        Body::Tool(tool) => tool.results.iter().flat_map(|result| &result.content).map(of_content).sum(),
    };
    content.saturating_add(FRAME)
}

fn of_part(part: &Part) -> u64 {
    match part {
        Part::Text { text, .. } | Part::Reasoning { text, .. } => of_text(text),
        Part::ToolCall(call) => {
            let input = match &call.input {
                ToolInput::Json(input) => input.as_str(),
                ToolInput::Malformed { text, .. } => text,
            };
            of_text(&call.tool_name).saturating_add(of_text(input)).saturating_add(FRAME)
        }
        Part::File(_) => FILE,
        Part::Source(_) => FRAME,
        Part::Provider { replay, .. } => of_text(replay.as_str()),
    }
}

fn of_content(content: &Content) -> u64 {
    match content {
        Content::Text(text) => of_text(text),
        Content::File(_) => FILE,
    }
}

/// By script: about four letters of ASCII a token, two of other alphabets, one ideograph.
#[cfg_attr(crablet_small, optimize(speed))]
pub(super) fn of_text(text: &str) -> u64 {
    // By the bytes that characters begin with; U+2E80 to U+2FFF, which nobody writes, count as what is before them.
    let quarters: u64 = text
        .bytes()
        .map(|byte| match byte {
            0..=0x7f => 1,
            0x80..=0xbf => 0,
            0xc0..=0xe2 => 2,
            _ => 4,
        })
        .sum();
    quarters.div_ceil(4)
}

/// About how many tokens the description of a tool takes.
pub(super) fn of_tool(tool: &ToolSpec) -> u64 {
    let texts = [tool.name.as_str(), &tool.description, tool.input_schema.as_str()];
    texts.iter().map(|text| of_text(text)).sum::<u64>().saturating_add(FRAME)
}

/// What the provider counts for 1000 estimated tokens, when it counted so many for this estimate. Within bounds, since what a
/// provider counts may leave something out, such as what it has cached.
pub(super) fn scale(counted: u64, estimate: u64) -> u64 {
    (counted.saturating_mul(EXACT) / estimate.max(1)).clamp(EXACT / 2, EXACT * 4)
}

/// What the provider would count for an estimate.
pub(super) fn scaled(estimate: u64, scale: u64) -> u64 {
    estimate.saturating_mul(scale) / EXACT
}

/// The estimate that the provider would count so.
pub(super) fn estimated(counted: u64, scale: u64) -> u64 {
    counted.saturating_mul(EXACT) / scale.max(1)
}

/// The scale of an estimate that is right.
pub(super) const EXACT: u64 = 1_000;

/// What a provider adds around each message or call.
const FRAME: u64 = 4;

/// What a picture of common size takes with the large providers; other files are of that order.
const FILE: u64 = 1_500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_counts_otherwise_is_believed_within_bounds() {
        assert_eq!(scaled(100, scale(150, 100)), 150);
        assert_eq!(estimated(150, scale(150, 100)), 100);
        assert_eq!(scaled(100, scale(1, 100)), 50, "the rest may be cached");
        assert_eq!(scaled(100, scale(1_000_000, 100)), 400);
        assert_eq!(scale(7, 0), 4_000);
    }

    #[test]
    fn scripts_differ() {
        assert_eq!(of_text(""), 0);
        assert_eq!(of_text("four letters"), 3);
        assert_eq!(of_text("привет"), 3);
        assert_eq!(of_text("你好"), 2);
    }
}
