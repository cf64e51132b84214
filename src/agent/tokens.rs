//! Token counts estimated from text, for providers that report none and for messages that were not sent yet.

use crate::model::{Body, Content, Message, Part, ToolInput};

/// About how many tokens a message takes.
pub(super) fn of_message(message: &Message) -> u64 {
    let content = match &message.body {
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
fn of_text(text: &str) -> u64 {
    let quarters: u64 = text
        .chars()
        .map(|letter| match letter {
            '\0'..='\x7f' => 1,
            '\u{80}'..='\u{2e7f}' => 2,
            _ => 4,
        })
        .sum();
    quarters.div_ceil(4)
}

/// What a provider adds around each message or call.
const FRAME: u64 = 4;

/// What a picture of common size takes with the large providers; other files are of that order.
const FILE: u64 = 1_500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_differ() {
        assert_eq!(of_text(""), 0);
        assert_eq!(of_text("four letters"), 3);
        assert_eq!(of_text("привет"), 3);
        assert_eq!(of_text("你好"), 2);
    }
}
