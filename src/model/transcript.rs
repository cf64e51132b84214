//! Any history made valid for any provider.
//!
//! Providers refuse a history in which a call has no result or a result no call, an id or a name has other characters than
//! they allow, reasoning comes from another model or stands at the end, or the turns begin or end with the wrong speaker.
//! Histories like that are normal: runs are aborted, models are switched, conversations are imported. What is stored stays as
//! it is; this is what is sent.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use super::message::{
    AssistantMessage, Body, CallId, Content, File, Message, ModelRef, Part, StopReason, ToolCall, ToolInput, ToolResult,
};
use super::names::{IdRule, fingerprint, wire_tool_name};
use super::request::FileKinds;
use crate::json::RawJson;

/// Messages that are encoded together: a user message, or an assistant message with all its results. Where the model paused
/// and went on, what it said before and after is one turn, and so are neighbours of the user where they must be one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group<'history> {
    pub(super) messages: &'history [Arc<Message>],
    /// How many groups before this one use one of its call ids. Such ids must be told apart.
    pub(super) repetition: u32,
    /// Whether the history ends with the model pausing while the provider's own tools work, so that it is now to go on.
    pub(super) is_paused: bool,
}

/// What the model that reads a history accepts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'model> {
    pub(super) model: &'model ModelRef,
    pub(super) files: FileKinds,
    pub(super) rules: Rules,
}

/// What a wire demands of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) ids: IdRule,
    /// Whether a blank text can carry data that the model wants back.
    pub(super) keeps_blank_text: bool,
    /// Whether reasoning may be the last thing that the model said in a turn.
    pub(super) ends_turn_with_reasoning: bool,
    /// Whether the first turn must be the user's.
    pub(super) begins_with_user: bool,
    /// Whether the last turn must be the user's: the model's words are not for others to begin.
    pub(super) ends_with_user: bool,
    /// Whether messages of the user that follow each other must be one.
    pub(super) merges_user: bool,
    /// Whether a message of the model that nothing was reasoned about is refused.
    pub(super) demands_reasoning: bool,
    /// Whether the model must have said something between results and the user.
    pub(super) waits_for_model: bool,
}

impl Rules {
    /// What OpenAI demands.
    pub(super) const DEFAULT: Self = Self {
        ids: IdRule::Short,
        keeps_blank_text: false,
        ends_turn_with_reasoning: false,
        begins_with_user: false,
        ends_with_user: false,
        merges_user: false,
        demands_reasoning: false,
        waits_for_model: false,
    };
}

/// A group as it is sent.
#[derive(Debug)]
pub(super) enum Turn<'history> {
    User(Vec<TurnContent<'history>>),
    Assistant {
        parts: Vec<TurnPart<'history>>,
        results: Vec<TurnResult<'history>>,
        /// Whether the model goes on with this very turn, so that the provider's tools in it may be without a result.
        is_paused: bool,
    },
}

/// Text, never blank, or a file of a kind that the model reads.
#[derive(Debug)]
pub(super) enum TurnContent<'history> {
    Text(Cow<'history, str>),
    File(&'history File),
}

#[derive(Debug)]
pub(super) enum TurnPart<'history> {
    Text { text: &'history str, replay: Option<&'history RawJson> },
    Reasoning { text: &'history str, replay: Option<&'history RawJson> },
    Call(TurnCall<'history>),
    Provider(&'history RawJson),
}

#[derive(Debug)]
pub(super) struct TurnCall<'history> {
    pub(super) id: String,
    pub(super) name: Cow<'history, str>,
    /// A JSON object; `{}` for a call whose input was none.
    pub(super) input: &'history str,
    pub(super) replay: Option<&'history RawJson>,
}

#[derive(Debug)]
pub(super) struct TurnResult<'history> {
    pub(super) id: String,
    /// The tool's name as the call has it.
    pub(super) name: Cow<'history, str>,
    /// Can be empty.
    pub(super) content: Vec<TurnContent<'history>>,
    pub(super) is_error: bool,
}

impl TurnResult<'_> {
    /// The texts of the content, one a line, for wires whose results hold nothing else.
    pub(super) fn text(&self) -> String {
        let texts = self.content.iter().map(|content| match content {
            TurnContent::Text(text) => text.as_ref(),
            TurnContent::File(_) => "[a file, attached]",
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The files of the content.
    pub(super) fn files(&self) -> impl Iterator<Item = &TurnContent<'_>> {
        self.content.iter().filter(|content| matches!(content, TurnContent::File(_)))
    }

    /// Whether the result says with [`FAILED`] that its call failed, and is not marked so: Claude's services take only text in what is.
    #[cfg(any(feature = "anthropic", feature = "bedrock"))]
    pub(super) fn fails_in_words(&self) -> bool {
        self.is_error && self.files().next().is_some()
    }
}

/// What the model reads as the result of a call that has none.
pub(super) const MISSING_RESULT: &str = "The call was interrupted; it has no result.";

/// What the model reads as a result that holds nothing, where services refuse such a one.
pub(super) const NO_OUTPUT: &str = "(no output)";

/// What stands before the files of a call that failed.
#[cfg(any(feature = "anthropic", feature = "bedrock"))]
pub(super) const FAILED: &str = "The call failed.";

/// What the model says between results and the user, where the user must not speak right behind results.
#[cfg(feature = "openai-chat")]
pub(super) const HEARD: &str = "OK.";

/// What stands before a history that begins with the model, where the user must speak first.
pub(super) const BEGINNING: &str = "(The beginning of this conversation was left out.)";

/// What stands behind a history that ends with the model, where the user must speak last.
pub(super) const GO_ON: &str = "Go on.";

/// What the model reads in place of a file that it cannot be sent.
pub(super) fn left_out(file: &File) -> String {
    format!("[{} left out: this model cannot read it]", file.media_type)
}

/// The first group of what is left of a history, which is not empty. Where it ends depends on the message behind it, and on
/// none further on.
pub(super) fn next_group<'history>(
    rest: &'history [Arc<Message>],
    reader: &Reader<'_>,
    calls: &mut CallIds,
) -> Group<'history> {
    let spoken = spoken(rest);
    let results = rest.iter().skip(spoken).take_while(|message| matches!(message.body, Body::Tool(_))).count();
    let length = match spoken {
        0 if reader.rules.merges_user && rest.first().is_some_and(|first| is_user(first)) => {
            rest.iter().take_while(|message| is_user(message) || is_silent(message, reader)).count()
        }
        0 => 1,
        spoken => spoken + results,
    };
    let (messages, behind) = rest.split_at_checked(length).unwrap_or((rest, &[]));
    let is_paused = behind.is_empty() && messages.last().is_some_and(|last| is_pause(last));
    Group { messages, repetition: calls.add(messages), is_paused }
}

fn is_user(message: &Message) -> bool {
    matches!(message.body, Body::User(_))
}

/// Whether nothing of a message is sent.
fn is_silent(message: &Arc<Message>, reader: &Reader<'_>) -> bool {
    let alone = Group { messages: std::slice::from_ref(message), repetition: 0, is_paused: false };
    alone.turn(reader).is_none()
}

/// How many messages the model spoke in one turn at the beginning of these.
fn spoken(messages: &[Arc<Message>]) -> usize {
    let pauses = messages.iter().take_while(|message| is_pause(message)).count();
    match messages.get(pauses).map(|message| &message.body) {
        Some(Body::Assistant(_)) => pauses + 1,
        _ => pauses,
    }
}

/// Whether the model waits for results but made no call: it waits for the provider.
fn is_pause(message: &Message) -> bool {
    let Body::Assistant(assistant) = &message.body else { return false };
    assistant.stop_reason == StopReason::ToolUse
        && assistant.tool_calls().next().is_none()
        && assistant.content.iter().any(|part| matches!(part, Part::Provider { .. }))
}

fn assistant(message: &Message) -> Option<&AssistantMessage> {
    match &message.body {
        Body::Assistant(assistant) => Some(assistant),
        Body::User(_) | Body::Tool(_) => None,
    }
}

/// The ids of the calls of some groups, each with the repetition of its group. Those of a history can be very many.
#[derive(Debug, Default)]
pub(super) struct CallIds(HashSet<(CallId, u32)>);

impl CallIds {
    /// Adds the calls of a group, and gives how many groups have used one of its ids before.
    fn add(&mut self, group: &[Arc<Message>]) -> u32 {
        let repetition =
            (0..).find(|repetition| call_ids(group).all(|id| !self.0.contains(&(id.clone(), *repetition))));
        let repetition = repetition.unwrap_or_default();
        self.0.extend(call_ids(group).map(|id| (id.clone(), repetition)));
        repetition
    }

    /// Takes the calls of a group away again.
    pub(super) fn forget(&mut self, group: &[Arc<Message>], repetition: u32) {
        for id in call_ids(group) {
            self.0.remove(&(id.clone(), repetition));
        }
    }
}

fn call_ids(group: &[Arc<Message>]) -> impl Iterator<Item = &CallId> {
    group
        .iter()
        .filter_map(|message| assistant(message))
        .flat_map(AssistantMessage::tool_calls)
        .map(|call| &call.call_id)
}

impl<'history> Group<'history> {
    pub(super) fn begins_with_user(&self) -> bool {
        self.messages.first().is_some_and(|message| is_user(message))
    }

    /// Whether neither the user nor a tool nor the provider has the last word.
    pub(super) fn ends_with_model(&self, reader: &Reader<'_>) -> bool {
        !self.begins_with_user()
            && !self.goes_on(reader)
            && self.spoken().all(|spoken| spoken.tool_calls().next().is_none())
    }

    /// Whether this model paused.
    fn goes_on(&self, reader: &Reader<'_>) -> bool {
        self.is_paused && self.spoken().last().is_some_and(|last| last.model == *reader.model)
    }

    fn spoken(&self) -> impl Iterator<Item = &'history AssistantMessage> {
        self.messages.iter().filter_map(|message| assistant(message))
    }

    /// The group as the reader accepts it; `None` when nothing of it is left.
    pub(super) fn turn(&self, reader: &Reader<'_>) -> Option<Turn<'history>> {
        match &self.messages.first()?.body {
            Body::User(_) => {
                let heard = self.messages.iter().filter_map(|message| match &message.body {
                    Body::User(user) => Some(content(&user.content, reader)),
                    Body::Assistant(_) | Body::Tool(_) => None,
                });
                let content: Vec<_> = heard.flatten().collect();
                (!content.is_empty()).then_some(Turn::User(content))
            }
            Body::Assistant(_) => self.assistant(reader),
            // A result without a call before it.
            Body::Tool(_) => None,
        }
    }

    fn assistant(&self, reader: &Reader<'_>) -> Option<Turn<'history>> {
        let mut given: Vec<_> = self.messages.iter().flat_map(|message| results(message)).map(Some).collect();
        let mut used = Vec::new();
        let mut parts = Vec::new();
        let mut results = Vec::new();
        for (part, is_own) in self
            .spoken()
            .flat_map(|spoken| spoken.content.iter().map(move |part| (part, spoken.model == *reader.model)))
        {
            let keeps_blank = is_own && reader.rules.keeps_blank_text;
            parts.push(match part {
                Part::Text { text, replay } if text.trim().is_empty() && !(keeps_blank && replay.is_some()) => continue,
                Part::Text { text, replay } => TurnPart::Text { text, replay: replay.as_ref().filter(|_| is_own) },
                Part::Reasoning { text, replay } if is_own => TurnPart::Reasoning { text, replay: replay.as_ref() },
                Part::Provider { replay, .. } if is_own => TurnPart::Provider(replay),
                Part::ToolCall(call) => {
                    let id = self.unique_id(call, &used, reader);
                    used.push(id.clone());
                    let of_call =
                        |result: &Option<&ToolResult>| result.is_some_and(|result| result.call_id == call.call_id);
                    let result = given.iter_mut().find(|result| of_call(result)).and_then(Option::take);
                    results.push(turn_result(call, id.clone(), result, reader));
                    TurnPart::Call(turn_call(call, id, is_own))
                }
                // Reasoning and blocks of another model fail its checks; sources stand in the text; no protocol takes
                // files as something that the model said.
                Part::Reasoning { .. } | Part::Provider { .. } | Part::Source(_) | Part::File(_) => continue,
            });
        }
        // An aborted turn can end with reasoning that led to nothing.
        while !reader.rules.ends_turn_with_reasoning && matches!(parts.last(), Some(TurnPart::Reasoning { .. })) {
            parts.pop();
        }
        // Reasoning alone says nothing.
        let says = |part: &TurnPart<'_>| !matches!(part, TurnPart::Reasoning { .. });
        parts.iter().any(says).then_some(Turn::Assistant { parts, results, is_paused: self.goes_on(reader) })
    }

    /// The id of a call that no other call of the history has, in this turn or another.
    fn unique_id(&self, call: &ToolCall, used: &[String], reader: &Reader<'_>) -> String {
        let id = call.call_id.as_str();
        let first = (self.repetition == 0).then(|| reader.rules.ids.apply(id).into_owned());
        // A number alone would meet calls whose id ends with one.
        let others = (0u32..).map(|number| {
            let distinct = format!("{id}_{}", fingerprint(&format!("{id}\n{}\n{number}", self.repetition)));
            reader.rules.ids.apply(&distinct).into_owned()
        });
        first.into_iter().chain(others).find(|id| !used.contains(id)).unwrap_or_default()
    }
}

fn content<'history>(content: &'history [Content], reader: &Reader<'_>) -> Vec<TurnContent<'history>> {
    let sent = content.iter().filter_map(|content| match content {
        Content::Text(text) if text.trim().is_empty() => None,
        Content::Text(text) => Some(TurnContent::Text(Cow::Borrowed(text))),
        Content::File(file) if reader.files.contains(file) => Some(TurnContent::File(file)),
        Content::File(file) => Some(TurnContent::Text(Cow::Owned(left_out(file)))),
    });
    sent.collect()
}

fn turn_result<'history>(
    call: &'history ToolCall,
    id: String,
    result: Option<&'history ToolResult>,
    reader: &Reader<'_>,
) -> TurnResult<'history> {
    let content = result.map_or_else(
        || vec![TurnContent::Text(Cow::Borrowed(MISSING_RESULT))],
        |result| content(&result.content, reader),
    );
    TurnResult {
        id,
        name: wire_tool_name(&call.tool_name),
        content,
        is_error: result.is_none_or(|result| result.is_error),
    }
}

fn turn_call<'history>(call: &'history ToolCall, id: String, is_own: bool) -> TurnCall<'history> {
    let input = match &call.input {
        // Every provider demands an object here, even for a call that was answered with an error for not being one.
        ToolInput::Json(input) if input.as_str().trim_start().starts_with('{') => input.as_str(),
        ToolInput::Json(_) | ToolInput::Malformed { .. } => "{}",
    };
    TurnCall { id, name: wire_tool_name(&call.tool_name), input, replay: call.replay.as_ref().filter(|_| is_own) }
}

fn results(message: &Message) -> &[ToolResult] {
    match &message.body {
        Body::Tool(tool) => &tool.results,
        Body::User(_) | Body::Assistant(_) => &[],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::model::message::{MessageId, StopReason, ToolMessage, Usage};

    fn message(body: Body) -> Arc<Message> {
        Arc::new(Message { id: MessageId::new("m"), body })
    }

    fn model(id: &str) -> ModelRef {
        ModelRef { wire: "w".into(), provider: "p".into(), id: id.into() }
    }

    fn assistant(content: Vec<Part>) -> Arc<Message> {
        message(Body::Assistant(AssistantMessage {
            content,
            model: model("a"),
            stop_reason: StopReason::ToolUse,
            usage: Usage::default(),
        }))
    }

    fn call(id: &str) -> Part {
        Part::ToolCall(ToolCall {
            call_id: CallId::new(id),
            tool_name: "t".into(),
            input: ToolInput::Json(RawJson::parse("{}").unwrap()),
            replay: Some(RawJson::parse("1").unwrap()),
        })
    }

    fn tool(results: &[(&str, &str)]) -> Arc<Message> {
        let result = |(id, text): &(&str, &str)| ToolResult {
            call_id: CallId::new(*id),
            tool_name: "t".into(),
            content: vec![Content::Text((*text).to_owned())],
            output: None,
            details: None,
            is_error: false,
        };
        message(Body::Tool(ToolMessage { results: results.iter().map(result).collect() }))
    }

    fn reader(model: &ModelRef, ids: IdRule) -> Reader<'_> {
        let rules = Rules { ids, ..Rules::DEFAULT };
        Reader { model, files: FileKinds::ALL, rules }
    }

    fn groups<'history>(history: &'history [Arc<Message>], reader: &Reader<'_>) -> Vec<Group<'history>> {
        let (mut groups, mut rest, mut calls) = (Vec::new(), history, CallIds::default());
        while !rest.is_empty() {
            let group = next_group(rest, reader, &mut calls);
            rest = &rest[group.messages.len()..];
            groups.push(group);
        }
        groups
    }

    /// The first turn, as a model reads it.
    fn first_turn<'history>(history: &'history [Arc<Message>], model: &ModelRef) -> Option<Turn<'history>> {
        let reader = reader(model, IdRule::Word);
        groups(history, &reader)[0].turn(&reader)
    }

    /// The ids of the calls, and the texts of their results, of each turn.
    fn sent(history: &[Arc<Message>], ids: IdRule) -> Vec<Vec<(String, Option<String>)>> {
        let target = model("a");
        let reader = reader(&target, ids);
        let turns =
            groups(history, &reader).into_iter().filter_map(|group| group.turn(&reader).map(|turn| (group, turn)));
        turns
            .map(|(_, turn)| match turn {
                Turn::User(_) => Vec::new(),
                Turn::Assistant { results, .. } => results
                    .into_iter()
                    .map(|result| {
                        let text = Some(result.text()).filter(|text| text != MISSING_RESULT);
                        (result.id, text)
                    })
                    .collect(),
            })
            .collect()
    }

    fn pair(id: &str, text: Option<&str>) -> (String, Option<String>) {
        (id.to_owned(), text.map(str::to_owned))
    }

    #[test]
    fn every_call_gets_one_result_and_orphans_go() {
        let history = [
            tool(&[("x", "orphan")]),
            assistant(vec![call("a"), call("b")]),
            tool(&[("b", "2"), ("a", "1"), ("z", "orphan")]),
            assistant(vec![call("c")]),
        ];
        assert_eq!(
            sent(&history, IdRule::Word),
            [vec![pair("a", Some("1")), pair("b", Some("2"))], vec![pair("c", None)]]
        );
    }

    #[test]
    fn repeated_ids_are_told_apart_within_a_turn_and_between_turns() {
        let history = [
            assistant(vec![call("x"), call("x")]),
            tool(&[("x", "1"), ("x", "2")]),
            assistant(vec![call("x")]),
            tool(&[("x", "3")]),
        ];
        let word = sent(&history, IdRule::Word);
        let texts: Vec<_> = word.iter().flatten().filter_map(|(_, text)| text.as_deref()).collect();
        assert_eq!(texts, ["1", "2", "3"]);
        let ids: BTreeSet<_> = word.iter().flatten().map(|(id, _)| id.as_str()).collect();
        assert!(ids.len() == 3 && ids.contains("x"), "{ids:?}");
        let nine = sent(&history, IdRule::Nine);
        let ids: BTreeSet<_> = nine.iter().flatten().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), 3);
        assert!(ids.iter().all(|id| id.len() == 9));
    }

    #[test]
    fn only_the_model_that_reasoned_gets_its_reasoning_back() {
        let content = vec![
            Part::Reasoning { text: "hm".into(), replay: None },
            Part::Provider { kind: "k".into(), replay: RawJson::parse("{}").unwrap() },
            call("a"),
        ];
        let history = [assistant(content)];
        for (id, expected) in [("a", 3), ("b", 1)] {
            let target = model(id);
            let turn = first_turn(&history, &target).unwrap();
            let Turn::Assistant { parts, .. } = turn else { panic!("not an assistant") };
            assert_eq!(parts.len(), expected);
            let Some(TurnPart::Call(call)) = parts.last() else { panic!("no call") };
            assert_eq!(call.replay.is_some(), id == "a");
        }
        let only_reasoning = [assistant(vec![Part::Reasoning { text: "hm".into(), replay: None }])];
        let target = model("b");
        assert!(first_turn(&only_reasoning, &target).is_none());
    }

    #[test]
    fn an_input_that_is_no_object_is_sent_as_an_empty_one() {
        let broken = |input| {
            Part::ToolCall(ToolCall { call_id: CallId::new("a"), tool_name: "a b".into(), input, replay: None })
        };
        for input in [
            ToolInput::Json(RawJson::parse("[1]").unwrap()),
            ToolInput::Malformed { text: "{".into(), reason: "cut".into() },
        ] {
            let history = [assistant(vec![broken(input)])];
            let target = model("a");
            let turn = first_turn(&history, &target).unwrap();
            let Turn::Assistant { parts, .. } = turn else { panic!("not an assistant") };
            let TurnPart::Call(call) = &parts[0] else { panic!("no call") };
            assert_eq!(call.input, "{}");
            assert!(!call.name.contains(' '));
        }
    }
}
