//! Compaction: what a model is sent instead of a history that has become too long. The history itself stays whole.
//!
//! The first message stays, so that the beginning is the same as before and stays in the provider's cache; the newest
//! ones stay as they are; what lies between is replaced by one message with a line for each. A call is never separated
//! from its result. The message says in short what it stands for, by lines or in the words of a model.

use std::sync::Arc;

use super::summarizing::{BY_MODEL, ByModel};
use super::tokens;
use crate::model::{Body, Content, Message, Origin, Part, ToolInput, UserMessage};

/// When and how a history is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The tokens beyond which a step sends less than the history; set it well under the model's context window. `None`,
    /// the default, to wait until the provider says that the input is too long: then it is done once and the call is made
    /// again.
    pub threshold: Option<u64>,
    /// About how many tokens of the newest messages stay as they are. Default 20 000.
    pub keep: u64,
    /// Who says in short what is left out. Default [`Summarizer::LINES`].
    pub summarizer: Summarizer,
}

/// Who says in short what a compaction leaves out: [`LINES`](Self::LINES), the default, or [`MODEL`](Self::MODEL).
#[derive(Clone, Copy, Debug, Default)]
pub struct Summarizer(Option<&'static dyn ByModel>);

impl Summarizer {
    /// Nobody: a line for each message, made without a model. It costs nothing and is the same every time.
    pub const LINES: Self = Self(None);
    /// The agent's model, in a call of its own whose tokens count in the run. Where it fails, the lines stand in its place.
    pub const MODEL: Self = Self(Some(BY_MODEL));

    /// What asks the model, where it is one.
    pub(super) fn by_model(self) -> Option<&'static dyn ByModel> {
        self.0
    }
}

impl PartialEq for Summarizer {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_some() == other.0.is_some()
    }
}

impl Eq for Summarizer {}

impl Default for Compaction {
    fn default() -> Self {
        Self { threshold: None, keep: 20_000, summarizer: Summarizer::LINES }
    }
}

/// A stretch of the history and the message that stands for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Compacted {
    /// The first message of the stretch.
    pub(super) start: usize,
    /// The first message after it.
    pub(super) end: usize,
    pub(super) message: Arc<Message>,
}

impl Compacted {
    /// What is sent of this history.
    pub(super) fn apply(&self, history: &[Arc<Message>]) -> Vec<Arc<Message>> {
        let before = history.iter().take(self.start);
        let after = history.iter().skip(self.end);
        before.chain([&self.message]).chain(after).cloned().collect()
    }
}

/// The stretch to replace so that about so many tokens of the newest messages stay. `None` when that would leave nothing
/// out that `from` does not leave out already.
pub(super) fn stretch(history: &[Arc<Message>], from: Option<&Compacted>, keep: u64) -> Option<(usize, usize)> {
    let start = usize::from(matches!(history.first().map(|message| &message.body), Some(Body::User(_))));
    let mut end = history.len();
    let mut kept: u64 = 0;
    for (index, message) in history.iter().enumerate().rev() {
        kept = kept.saturating_add(tokens::of_message(message));
        // The newest messages stay whatever their size, up to the last that may stand first.
        if kept > keep && end < history.len() {
            break;
        }
        if !matches!(message.body, Body::Tool(_)) {
            end = index;
        }
    }
    let already = from.map_or(start, |compacted| compacted.end);
    (end > already.max(start)).then_some((start, end))
}

/// The text that stands for these messages: in the words of a model or, without them, a line for each. What the user asked for
/// last is repeated in full, unless the messages that stay say it.
pub(super) fn summary(messages: &[Arc<Message>], kept: &[Arc<Message>], in_words: Option<String>) -> Body {
    let text = in_words.unwrap_or_else(|| lines(messages));
    let mut text = format!("Earlier in this conversation, {} messages in short:\n{text}", messages.len());
    if let Some(request) = messages.iter().rev().find_map(|message| request(message))
        && !kept.iter().any(|message| self::request(message).is_some())
    {
        text.push_str("\n\nThe user's latest message in full:\n");
        text.extend(request.chars().take(REQUEST_LETTERS));
    }
    Body::User(UserMessage { content: vec![Content::Text(text)], origin: Origin::Compacted })
}

/// What a model is asked that is to say these messages in short. What one of them says in short already is all that is left of
/// what it stands for, so it is there whole.
pub(super) fn question(messages: &[Arc<Message>]) -> Body {
    let mut text = QUESTION.to_owned();
    let mut lines = Vec::new();
    for message in messages.iter().rev() {
        match &message.body {
            Body::User(user) if user.origin == Origin::Compacted => {
                text.push_str(&text_of(&user.content));
                text.push('\n');
            }
            _ => lines.extend(lines_of(message, QUESTION_LETTERS)),
        }
    }
    let left_out = fit(&mut lines, QUESTION_BYTES);
    if left_out > 0 {
        text.push_str(&format!("({left_out} older lines are left out)\n"));
    }
    text.push_str(&lines.join("\n"));
    Body::User(UserMessage { content: vec![Content::Text(text)], origin: Origin::Compacted })
}

/// A line for each message, the newest of them if not all have room.
fn lines(messages: &[Arc<Message>]) -> String {
    let mut lines: Vec<String> = messages.iter().rev().flat_map(|message| lines_of(message, LINE_LETTERS)).collect();
    let left_out = fit(&mut lines, SUMMARY_BYTES);
    let text = lines.join("\n");
    if left_out > 0 { format!("({left_out} lines left out)\n{text}") } else { text }
}

/// Keeps the lines that have room, and puts them in order. Gives how many had none.
fn fit(lines: &mut Vec<String>, mut room: usize) -> usize {
    let fitting = lines.iter().take_while(|line| {
        let length = line.len();
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    });
    let left_out = lines.len() - fitting.count();
    lines.truncate(lines.len() - left_out);
    lines.reverse();
    left_out
}

/// What the user asked for with this message.
fn request(message: &Message) -> Option<String> {
    match &message.body {
        Body::User(user) if !matches!(user.origin, Origin::Compacted | Origin::Nudge) => Some(text_of(&user.content)),
        _ => None,
    }
}

/// The lines of a message, last first.
fn lines_of(message: &Message, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = match &message.body {
        Body::User(user) => vec![format!("User: {}", shortened(&text_of(&user.content), letters))],
        Body::Assistant(assistant) => assistant.content.iter().filter_map(|part| line_of_part(part, letters)).collect(),
        Body::Tool(tool) => {
            let line = |result: &crate::model::ToolResult| {
                let outcome = if result.is_error { "failed" } else { "gave" };
                format!("{} {outcome}: {}", result.tool_name, shortened(&text_of(&result.content), letters))
            };
            tool.results.iter().map(line).collect()
        }
    };
    lines.reverse();
    lines
}

fn line_of_part(part: &Part, letters: usize) -> Option<String> {
    match part {
        Part::Text { text, .. } => Some(format!("Assistant: {}", shortened(text, letters))),
        Part::ToolCall(call) => {
            let input = match &call.input {
                ToolInput::Json(input) => input.as_str(),
                ToolInput::Malformed { text, .. } => text,
            };
            Some(format!("Assistant called {} with {}", call.tool_name, shortened(input, letters)))
        }
        Part::Reasoning { .. } | Part::Source(_) | Part::File(_) | Part::Provider { .. } => None,
    }
}

fn text_of(content: &[Content]) -> String {
    let text = |content: &Content| match content {
        Content::Text(text) => text.clone(),
        Content::File(file) => format!("[{}]", file.media_type),
    };
    content.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// The beginning of a text, on one line.
fn shortened(text: &str, letters: usize) -> String {
    let mut words = text.split_whitespace().flat_map(|word| word.chars().chain([' ']));
    let mut short: String = words.by_ref().take(letters).collect();
    if words.next().is_some() {
        short.push('…');
    }
    short.trim_end().to_owned()
}

/// Enough to know what a message was about.
const LINE_LETTERS: usize = 200;

/// About 2 000 tokens: little against what stays, and room for some dozens of lines.
const SUMMARY_BYTES: usize = 8_000;

/// Enough of each message for a model to understand it.
const QUESTION_LETTERS: usize = 2_000;

/// About 50 000 tokens: fits the window of every model that is worth asking.
const QUESTION_BYTES: usize = 200_000;

const QUESTION: &str = "Say in short what happened in the conversation below, for the assistant that goes on with it and sees \
nothing else of it. Keep what the user wants, what was decided, names, numbers, paths and ids, what was tried and what came of \
it, and what is still open. Write only the summary.\n\n";

/// A request longer than this is a document that was pasted; its beginning says what to do with it.
const REQUEST_LETTERS: usize = 4_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        AssistantMessage, CallId, MessageId, ModelRef, StopReason, ToolCall, ToolMessage, ToolResult, Usage,
    };

    fn message(number: usize, body: Body) -> Arc<Message> {
        Arc::new(Message { id: MessageId::new(format!("m{number}")), body })
    }

    fn user(text: &str) -> Body {
        Body::User(UserMessage { content: vec![Content::Text(text.into())], origin: Origin::Prompt })
    }

    fn answer(part: Part) -> Body {
        Body::Assistant(AssistantMessage {
            content: vec![part],
            model: ModelRef::default(),
            stop_reason: StopReason::Stop,
            usage: Usage::default(),
        })
    }

    fn conversation(turns: usize) -> Vec<Arc<Message>> {
        let mut messages = Vec::new();
        for turn in 0..turns {
            let call_id = CallId::new(format!("c{turn}"));
            let call = ToolCall {
                call_id: call_id.clone(),
                tool_name: "search".into(),
                input: ToolInput::Malformed { text: "{}".into(), reason: String::new() },
                replay: None,
            };
            let result = ToolResult {
                call_id,
                tool_name: "search".into(),
                content: vec![Content::Text("a hit ".repeat(20))],
                output: None,
                details: None,
                is_error: false,
            };
            messages.push(user(&format!("question {turn}")));
            messages.push(answer(Part::ToolCall(call)));
            messages.push(Body::Tool(ToolMessage { results: vec![result] }));
            messages.push(answer(Part::Text { text: format!("answer {turn}"), replay: None }));
        }
        messages.into_iter().enumerate().map(|(number, body)| message(number, body)).collect()
    }

    #[test]
    fn a_call_is_never_separated_from_its_result() {
        let history = conversation(10);
        for keep in 0..2_000 {
            let Some((start, end)) = stretch(&history, None, keep) else { continue };
            assert_eq!(start, 1, "the first message stays");
            let first_kept = &history[end].body;
            assert!(!matches!(first_kept, Body::Tool(_)), "keep {keep}: its call is gone");
        }
        assert_eq!(stretch(&history, None, u64::MAX), None);
        assert_eq!(stretch(&history[..1], None, 0), None);
    }

    #[test]
    fn less_and_less_is_left_out_the_more_is_kept() {
        let history = conversation(10);
        let ends: Vec<usize> =
            (0..400).filter_map(|keep| stretch(&history, None, keep * 2)).map(|(_, end)| end).collect();
        assert!(ends.windows(2).all(|pair| pair[0] >= pair[1]) && ends.len() > 10);
    }

    #[test]
    fn a_second_compaction_must_leave_out_more_than_the_first() {
        let history = conversation(10);
        let (start, end) = stretch(&history, None, 100).unwrap();
        let first = Compacted { start, end, message: history[0].clone() };
        assert_eq!(stretch(&history, Some(&first), 100), None);
        assert!(stretch(&history, Some(&first), 10).is_some());
    }

    #[test]
    fn the_summary_is_bounded_and_cuts_between_letters() {
        let messages: Vec<_> = (0..500).map(|number| message(number, user(&"ж\u{1f980}".repeat(300)))).collect();
        let Body::User(written) = summary(&messages, &messages[..1], None) else { panic!() };
        let text = text_of(&written.content);
        assert!(text.len() < SUMMARY_BYTES + 200, "{}", text.len());
        assert!(text.contains("lines left out") && text.contains('…'));
        let Body::User(written) = summary(&conversation(1), &[], None) else { panic!() };
        assert_eq!(
            text_of(&written.content).lines().skip(1).collect::<Vec<_>>()[..2],
            ["User: question 0", "Assistant called search with {}"]
        );
        assert!(text_of(&written.content).ends_with("latest message in full:\nquestion 0"));
    }
}
