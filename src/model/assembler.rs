//! From the events of an answer to the parts of a message.

use super::event::ModelEvent;
use super::message::{CallId, File, Part, Source, StopReason, ToolCall, ToolInput, Usage};
use crate::error::Error;
use crate::json::{self, RawJson};
use crate::ordered_map::OrderedMap;

/// Collects the events of one answer.
///
/// Ids of tool calls are taken as they come. A caller that needs them unique within a conversation changes the id of
/// `ToolInputStart` before it pushes the event.
#[derive(Debug, Default)]
pub struct Assembler {
    response_id: Option<String>,
    model: Option<String>,
    blocks: Vec<Block>,
    /// Where the blocks that have not ended are.
    open: OrderedMap<u32, usize>,
    usage: Usage,
    end: Option<End>,
}

/// A model's answer, complete or as far as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The provider's id of the answer.
    pub response_id: Option<String>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    /// The blocks in the order in which they began. Text that was cut off is there as far as it came. A tool call that
    /// was cut off is not, except where the model reached its limit within the input: then it is there as malformed.
    pub content: Vec<Part>,
    /// Why it ended; `error` when it failed, `aborted` when the events just ended.
    pub stop_reason: StopReason,
    /// The provider's own word for why it ended.
    pub stop_word: Option<String>,
    /// The last count.
    pub usage: Usage,
    /// What failed.
    pub error: Option<Error>,
}

#[derive(Debug)]
enum End {
    Stopped { reason: StopReason, word: Option<String> },
    Failed(Error),
}

#[derive(Debug)]
enum Block {
    Text { block: u32, text: String, replay: Option<RawJson> },
    Reasoning { block: u32, text: String, replay: Option<RawJson> },
    Call { block: u32, id: String, name: String, input: String, replay: Option<RawJson>, is_complete: bool },
    Whole(Part),
}

impl Assembler {
    /// An assembler of an answer that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event. Events after the last one are ignored, and so are deltas of blocks that never began.
    pub fn push(&mut self, event: &ModelEvent) {
        if self.end.is_some() {
            return;
        }
        match event {
            ModelEvent::Started { response_id, model } => {
                self.response_id.clone_from(response_id);
                self.model.clone_from(model);
            }
            ModelEvent::TextStart { block } => {
                self.begin(*block, Block::Text { block: *block, text: String::new(), replay: None });
            }
            ModelEvent::ReasoningStart { block } => {
                self.begin(*block, Block::Reasoning { block: *block, text: String::new(), replay: None });
            }
            ModelEvent::ToolInputStart { block, id, name } => {
                let (id, name) = (id.clone(), name.clone());
                let (input, replay) = (String::new(), None);
                self.begin(*block, Block::Call { block: *block, id, name, input, replay, is_complete: false });
            }
            ModelEvent::TextDelta { block, text: delta }
            | ModelEvent::ReasoningDelta { block, text: delta }
            | ModelEvent::ToolInputDelta { block, json: delta } => {
                if let Some(block) = self.block(*block) {
                    block.append(delta);
                }
            }
            ModelEvent::TextEnd { block, replay }
            | ModelEvent::ReasoningEnd { block, replay }
            | ModelEvent::ToolInputEnd { block, replay } => {
                if let Some(open) = self.block(*block) {
                    open.end(replay.clone());
                }
                self.open.remove(block);
            }
            ModelEvent::Source(source) => self.whole(Part::Source(Source::clone(source))),
            ModelEvent::File(file) => self.whole(Part::File(File::clone(file))),
            ModelEvent::Provider { kind, replay, .. } => {
                self.whole(Part::Provider { kind: kind.clone(), replay: replay.clone() });
            }
            ModelEvent::Usage(usage) => self.usage = *usage,
            ModelEvent::Stop { reason, raw } => {
                self.end = Some(End::Stopped { reason: *reason, word: raw.clone() });
            }
            ModelEvent::Failed(error) => self.end = Some(End::Failed(error.clone())),
        }
    }

    /// What is certain of a tool call's input so far; `None` for a block that is no call, or when nothing is certain yet.
    ///
    /// Costs a pass over the input each time it is asked.
    pub fn partial_input(&self, block: u32) -> Option<RawJson> {
        match self.blocks.iter().rev().find(|candidate| candidate.number() == Some(block))? {
            Block::Call { input, .. } => json::complete(input),
            _ => None,
        }
    }

    /// The tokens counted so far, for an answer that is thrown away.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The answer. Without a last event it is one that was aborted.
    pub fn finish(self) -> Answer {
        let (stop_reason, stop_word, error) = match self.end {
            Some(End::Stopped { reason, word }) => (reason, word, None),
            Some(End::Failed(error)) => (StopReason::Error, None, Some(error)),
            None => (StopReason::Aborted, None, None),
        };
        Answer {
            response_id: self.response_id,
            model: self.model,
            content: self.blocks.into_iter().filter_map(|block| block.into_part(stop_reason)).collect(),
            stop_reason,
            stop_word,
            usage: self.usage,
            error,
        }
    }

    fn begin(&mut self, number: u32, block: Block) {
        self.open.insert(number, self.blocks.len());
        self.blocks.push(block);
    }

    /// A block that has not ended.
    fn block(&mut self, block: u32) -> Option<&mut Block> {
        self.blocks.get_mut(*self.open.get(&block)?)
    }

    fn whole(&mut self, part: Part) {
        self.blocks.push(Block::Whole(part));
    }
}

impl Block {
    fn number(&self) -> Option<u32> {
        match self {
            Self::Text { block, .. } | Self::Reasoning { block, .. } | Self::Call { block, .. } => Some(*block),
            Self::Whole(_) => None,
        }
    }

    fn append(&mut self, delta: &str) {
        match self {
            Self::Text { text, .. } | Self::Reasoning { text, .. } => text.push_str(delta),
            Self::Call { input, .. } => input.push_str(delta),
            Self::Whole(_) => {}
        }
    }

    fn end(&mut self, data: Option<RawJson>) {
        match self {
            Self::Text { replay, .. } | Self::Reasoning { replay, .. } => *replay = data,
            Self::Call { replay, is_complete, .. } => {
                *replay = data;
                *is_complete = true;
            }
            Self::Whole(_) => {}
        }
    }

    fn into_part(self, stop_reason: StopReason) -> Option<Part> {
        match self {
            Self::Text { text, replay, .. } if text.is_empty() && replay.is_none() => None,
            Self::Text { text, replay, .. } => Some(Part::Text { text, replay }),
            Self::Reasoning { text, replay, .. } if text.is_empty() && replay.is_none() => None,
            Self::Reasoning { text, replay, .. } => Some(Part::Reasoning { text, replay }),
            Self::Call { is_complete: false, .. } => None,
            Self::Call { id, name, input, replay, .. } => Some(Part::ToolCall(ToolCall {
                call_id: CallId::new(id),
                tool_name: name,
                input: tool_input(input, stop_reason),
                replay,
            })),
            Self::Whole(part) => Some(part),
        }
    }
}

fn tool_input(text: String, stop_reason: StopReason) -> ToolInput {
    let is_cut = stop_reason == StopReason::Length;
    // A tool without arguments: most providers then send none at all, some models write `null`.
    let is_absent = matches!(text.trim(), "" | "null") && !is_cut;
    if is_absent && let Ok(empty) = RawJson::parse("{}") {
        return ToolInput::Json(empty);
    }
    match RawJson::parse(text.clone()).map(unwrapped) {
        Ok(input) if !is_cut || input.as_str().trim_start().starts_with('{') => ToolInput::Json(input),
        Ok(_) => ToolInput::Malformed { text, reason: CUT_OFF.to_owned() },
        Err(_) if is_cut => ToolInput::Malformed { text, reason: CUT_OFF.to_owned() },
        Err(error) => {
            let reason = format!("the input is not valid JSON ({error}); call the tool again with one JSON object");
            ToolInput::Malformed { text, reason }
        }
    }
}

/// Some models write the object as a string of JSON. No tool takes a string, so nothing else can be meant.
fn unwrapped(input: RawJson) -> RawJson {
    let inner = json::read_string(input.as_str()).filter(|inner| inner.trim_start().starts_with('{'));
    inner.and_then(|inner| RawJson::parse(inner).ok()).unwrap_or(input)
}

const CUT_OFF: &str =
    "the input was cut off because the answer reached its output limit; call the tool again with less input";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn call(input: &str) -> Vec<ModelEvent> {
        vec![
            ModelEvent::ToolInputStart { block: 0, id: "c1".into(), name: "find".into() },
            ModelEvent::ToolInputDelta { block: 0, json: input.into() },
            ModelEvent::ToolInputEnd { block: 0, replay: None },
        ]
    }

    fn stop(reason: StopReason) -> ModelEvent {
        ModelEvent::Stop { reason, raw: None }
    }

    fn assemble(events: impl IntoIterator<Item = ModelEvent>) -> Answer {
        let mut assembler = Assembler::new();
        for event in events {
            assembler.push(&event);
        }
        assembler.finish()
    }

    fn input(answer: &Answer) -> &ToolInput {
        match answer.content.as_slice() {
            [Part::ToolCall(call)] => &call.input,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn interleaved_blocks_keep_the_order_in_which_they_began() {
        let answer = assemble([
            ModelEvent::TextStart { block: 0 },
            ModelEvent::ToolInputStart { block: 1, id: "c1".into(), name: "find".into() },
            ModelEvent::ToolInputDelta { block: 1, json: "{\"a\"".into() },
            ModelEvent::TextDelta { block: 0, text: "Hm".into() },
            ModelEvent::ToolInputDelta { block: 1, json: ":1}".into() },
            ModelEvent::TextEnd { block: 0, replay: None },
            ModelEvent::ToolInputEnd { block: 1, replay: None },
            stop(StopReason::ToolUse),
        ]);
        assert_eq!(answer.content[0], Part::Text { text: "Hm".into(), replay: None });
        let Part::ToolCall(call) = &answer.content[1] else { panic!("no call") };
        assert_eq!(call.input, ToolInput::Json(RawJson::parse(r#"{"a":1}"#).unwrap()));
        assert_eq!(answer.stop_reason, StopReason::ToolUse);
    }

    #[test]
    fn a_call_without_its_end_is_not_in_the_answer() {
        let mut events = call(r#"{"a":1}"#);
        events.pop();
        let failed = Error::new(ErrorKind::StreamTruncated, "cut");
        let answer = assemble(events.into_iter().chain([ModelEvent::Failed(failed.clone())]));
        assert_eq!(answer.content, []);
        assert_eq!((answer.stop_reason, answer.error), (StopReason::Error, Some(failed)));
    }

    #[test]
    fn a_call_that_the_limit_cut_is_malformed() {
        for text in [r#"{"a":"b"#, "", "12"] {
            let answer = assemble(call(text).into_iter().chain([stop(StopReason::Length)]));
            assert!(matches!(input(&answer), ToolInput::Malformed { reason, .. } if reason == CUT_OFF), "{text}");
        }
        let answer = assemble(call("{}").into_iter().chain([stop(StopReason::Length)]));
        assert!(matches!(input(&answer), ToolInput::Json(_)));
    }

    #[test]
    fn no_input_is_an_empty_object_and_nonsense_is_malformed() {
        let answer = assemble(call(" ").into_iter().chain([stop(StopReason::ToolUse)]));
        assert_eq!(input(&answer), &ToolInput::Json(RawJson::parse("{}").unwrap()));
        let answer = assemble(call("null").into_iter().chain([stop(StopReason::ToolUse)]));
        assert_eq!(input(&answer), &ToolInput::Json(RawJson::parse("{}").unwrap()));
        let answer = assemble(call(r#""{\"a\":1}""#).into_iter().chain([stop(StopReason::ToolUse)]));
        assert_eq!(input(&answer), &ToolInput::Json(RawJson::parse(r#"{"a":1}"#).unwrap()));
        let answer = assemble(call(r#"{"a":1}{"a":2}"#).into_iter().chain([stop(StopReason::ToolUse)]));
        assert!(matches!(input(&answer), ToolInput::Malformed { .. }));
    }

    #[test]
    fn an_aborted_answer_keeps_its_text() {
        let answer =
            assemble([ModelEvent::TextStart { block: 0 }, ModelEvent::TextDelta { block: 0, text: "par".into() }]);
        assert_eq!(answer.content, [Part::Text { text: "par".into(), replay: None }]);
        assert_eq!(answer.stop_reason, StopReason::Aborted);
    }

    #[test]
    fn the_input_can_be_read_while_it_is_written() {
        let mut assembler = Assembler::new();
        for event in call(r#"{"path":"a/b","body":"hal"#).iter().take(2) {
            assembler.push(event);
        }
        assert_eq!(assembler.partial_input(0).unwrap().as_str(), r#"{"path":"a/b","body":"hal"}"#);
    }
}
