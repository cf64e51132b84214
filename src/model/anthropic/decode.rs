//! The answer: a stream of events about content blocks, or one message.

use serde_json::value::RawValue;

use super::super::answer::{Protocol, fail};
use super::super::blocks::{Numbering, OpenBlock, OpenBlocks};
use super::super::event::ModelEvent;
use super::super::message::{Source, StopReason, Usage};
use super::super::names::ToolNames;
use super::super::request::ToolSpec;
use super::scan::{BlockDelta, text_member};
use crate::error::ErrorKind;
use crate::json::{Object, RawJson, add_member, filled, quoted};

/// What is known of one answer so far.
#[derive(Debug)]
pub(super) struct MessageDecoder {
    names: ToolNames,
    numbering: Numbering,
    open: OpenBlocks<Content>,
    has_calls: bool,
    usage: Usage,
    stop_word: Option<String>,
}

#[derive(Debug)]
enum Content {
    Text {
        citations: Vec<RawJson>,
    },
    Thinking {
        signature: String,
    },
    Redacted {
        replay: Option<RawJson>,
    },
    /// `initial` is the input of the start event, which counts when no delta follows.
    Call {
        initial: Option<String>,
        has_delta: bool,
        replay: Option<RawJson>,
    },
    /// A block of a tool that runs at the provider, or of a type from the future.
    Provider {
        kind: String,
        start: RawJson,
        input: String,
        content: Option<String>,
        is_known: bool,
    },
}

impl MessageDecoder {
    pub(super) fn new(tools: &[ToolSpec]) -> Self {
        Self {
            names: ToolNames::new(tools),
            numbering: Numbering::default(),
            open: OpenBlocks::default(),
            has_calls: false,
            usage: Usage::default(),
            stop_word: None,
        }
    }

    fn start_message(&mut self, message: &Object<'_>, events: &mut Vec<ModelEvent>) {
        // Gateways announce a message and then pass on the provider's announcement.
        if self.numbering.is_started() && !self.numbering.is_empty() {
            return fail(events, ErrorKind::MalformedStream, "a second message began before the first one ended");
        }
        self.numbering.start(Some(message), ["id", "model"], events);
        self.count(message.object("usage"), events);
        // What is already whole when the message starts: a call that code at the provider made, or the whole answer of a
        // server that does not stream.
        for (index, block) in (0..).zip(message.array("content").unwrap_or_default()) {
            self.start_block(index, block, events);
            self.stop_block(index, events);
        }
        self.stop_word = message.string("stop_reason");
    }

    /// Usage is cumulative: a later number replaces an earlier one, and one that is absent does not, nor does a 0: gateways
    /// write it in the one or the other of the two events that count.
    fn count(&mut self, usage: Option<Object<'_>>, events: &mut Vec<ModelEvent>) {
        let Some(usage) = usage else { return };
        let details = usage.object("output_tokens_details").unwrap_or_default();
        let latest = |object: &Object<'_>, member, before: Option<u64>| match object.integer(member) {
            Some(0) | None => before.or(object.integer(member)),
            later => later,
        };
        let counted = Usage {
            input: latest(&usage, "input_tokens", self.usage.input),
            output: latest(&usage, "output_tokens", self.usage.output),
            cache_read: latest(&usage, "cache_read_input_tokens", self.usage.cache_read),
            cache_write: latest(&usage, "cache_creation_input_tokens", self.usage.cache_write),
            reasoning: latest(&details, "thinking_tokens", self.usage.reasoning),
            cost: None,
        };
        if counted != self.usage {
            self.usage = counted;
            events.push(ModelEvent::Usage(counted));
        }
    }

    fn start_block(&mut self, index: u64, raw: &RawValue, events: &mut Vec<ModelEvent>) {
        let Ok(start) = Object::parse(raw.get()) else { return };
        // An index that is used again without a stop between.
        self.stop_block(index, events);
        let block = self.numbering.next();
        let kind = start.string("type").unwrap_or_default();
        let mut citations = Vec::new();
        let content = match kind.as_str() {
            "text" => {
                events.push(ModelEvent::TextStart { block });
                push_text(block, start.string("text"), events);
                citations = start.array("citations").unwrap_or_default();
                Content::Text { citations: Vec::new() }
            }
            "thinking" => {
                events.push(ModelEvent::ReasoningStart { block });
                push_reasoning(block, start.string("thinking"), events);
                Content::Thinking { signature: start.string("signature").unwrap_or_default() }
            }
            "redacted_thinking" => {
                events.push(ModelEvent::ReasoningStart { block });
                Content::Redacted { replay: start.string("data").and_then(|data| member("redacted", &quoted(&data))) }
            }
            "tool_use" => {
                self.has_calls = true;
                let name = self.names.registered(start.string("name").unwrap_or_default());
                let id = start.string("id").filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call_{block}"));
                events.push(ModelEvent::ToolInputStart { block, id, name });
                let initial = start.get("input").map(|input| input.get().to_owned());
                let initial = initial.filter(|input| !is_empty_object(input) && input != "null");
                let replay = start.get("caller").and_then(|caller| member("caller", caller.get()));
                Content::Call { initial, has_delta: false, replay }
            }
            _ => Content::Provider {
                kind,
                start: RawJson::from(raw),
                input: String::new(),
                content: None,
                is_known: true,
            },
        };
        self.open.open(index, block, content, events);
        for citation in citations {
            self.cite(index, citation, events);
        }
    }

    fn cite(&mut self, index: u64, citation: &RawValue, events: &mut Vec<ModelEvent>) {
        let Some(OpenBlock { content: Content::Text { citations }, .. }) = self.block(index) else { return };
        let Ok(object) = Object::parse(citation.get()) else { return };
        let replay = RawJson::from(citation);
        citations.push(replay.clone());
        let title = object.string("title").or_else(|| object.string("document_title"));
        let url = object.string("url").or_else(|| object.string("source"));
        events.push(ModelEvent::Source(Source { url, title, replay: Some(replay) }));
    }

    fn change_block(&mut self, index: u64, delta: &Object<'_>, events: &mut Vec<ModelEvent>) {
        let kind = delta.string("type").unwrap_or_default();
        if kind == "citations_delta" {
            if let Some(citation) = delta.get("citation") {
                self.cite(index, citation, events);
            }
            return;
        }
        if let Some(member) = text_member(&kind) {
            return self.write(index, &kind, delta.string(member).unwrap_or_default(), events);
        }
        let Some(open) = self.block(index) else { return };
        match (&mut open.content, kind.as_str()) {
            (Content::Thinking { signature }, "signature_delta") => {
                *signature = delta.string("signature").unwrap_or_default();
            }
            (Content::Provider { content, .. }, "compaction_delta") => {
                content.get_or_insert_default().push_str(&delta.string("content").unwrap_or_default());
            }
            (Content::Provider { is_known, .. }, _) => *is_known = false,
            _ => {}
        }
    }

    /// More text of a block, from a delta of one of the types that are nothing but text.
    fn write(&mut self, index: u64, kind: &str, text: String, events: &mut Vec<ModelEvent>) {
        if self.block(index).is_none() && !text.is_empty() {
            self.begin_unannounced(index, kind, events);
        }
        let Some(open) = self.block(index) else { return };
        let block = open.block;
        match (&mut open.content, kind) {
            (Content::Text { .. }, "text_delta") => push_text(block, Some(text), events),
            (Content::Thinking { .. }, "thinking_delta") => push_reasoning(block, Some(text), events),
            (Content::Call { has_delta, .. }, "input_json_delta") if !text.is_empty() => {
                *has_delta = true;
                events.push(ModelEvent::ToolInputDelta { block, json: text });
            }
            (Content::Provider { input, .. }, "input_json_delta") => input.push_str(&text),
            (Content::Provider { is_known, .. }, _) => *is_known = false,
            _ => {}
        }
    }

    /// Gateways forget the start of a block. Of text and thinking nothing is lost by that.
    fn begin_unannounced(&mut self, index: u64, kind: &str, events: &mut Vec<ModelEvent>) {
        let block = match kind {
            "text_delta" | "thinking_delta" => self.numbering.next(),
            _ => return,
        };
        let content = if kind == "text_delta" {
            events.push(ModelEvent::TextStart { block });
            Content::Text { citations: Vec::new() }
        } else {
            events.push(ModelEvent::ReasoningStart { block });
            Content::Thinking { signature: String::new() }
        };
        self.open.open(index, block, content, events);
    }

    fn stop_block(&mut self, index: u64, events: &mut Vec<ModelEvent>) {
        for open in self.open.close(index) {
            end_block(open, events);
        }
    }

    fn stop_message(&mut self, events: &mut Vec<ModelEvent>) {
        for open in self.open.close_all() {
            end_block(open, events);
        }
        let raw = self.stop_word.take();
        let reason = match raw.as_deref() {
            Some("end_turn" | "stop_sequence") | None if self.has_calls => StopReason::ToolUse,
            Some("end_turn" | "stop_sequence") | None => StopReason::Stop,
            // The provider's own tools are still at work: the same conversation is sent again.
            Some("tool_use" | "pause_turn" | "compaction") => StopReason::ToolUse,
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
            Some("refusal") => StopReason::Refusal,
            Some(word) => {
                let told = format!("the model stopped for a reason that this version of crablet does not know: {word}");
                return fail(events, ErrorKind::Protocol, &told);
            }
        };
        events.push(ModelEvent::Stop { reason, raw });
    }

    fn block(&mut self, index: u64) -> Option<&mut OpenBlock<Content>> {
        self.open.find(index, |_| true)
    }
}

impl Protocol for MessageDecoder {
    #[cfg_attr(crablet_small, optimize(speed))]
    fn scan(&mut self, payload: &str, events: &mut Vec<ModelEvent>) -> bool {
        let Some(BlockDelta { index, kind, text }) = BlockDelta::scan(payload) else { return false };
        self.write(index, kind, text, events);
        true
    }

    fn payload(&mut self, payload: &Object<'_>, events: &mut Vec<ModelEvent>) {
        let index = payload.integer("index").unwrap_or_default();
        match payload.string("type").as_deref() {
            Some("message_start") => {
                if let Some(message) = payload.object("message") {
                    self.start_message(&message, events);
                }
            }
            Some("content_block_start") => {
                if let Some(block) = payload.get("content_block") {
                    self.start_block(index, block, events);
                }
            }
            Some("content_block_delta") => {
                if let Some(delta) = payload.object("delta") {
                    self.change_block(index, &delta, events);
                }
            }
            Some("content_block_stop") => self.stop_block(index, events),
            Some("message_delta") => {
                self.count(payload.object("usage"), events);
                let word = payload.object("delta").and_then(|delta| delta.string("stop_reason"));
                self.stop_word = word.or_else(|| self.stop_word.take());
            }
            Some("message_stop") => self.stop_message(events),
            _ => {}
        }
    }

    fn document(&mut self, document: &Object<'_>, events: &mut Vec<ModelEvent>) {
        if document.array("content").is_none() {
            return fail(events, ErrorKind::MalformedStream, "the answer is JSON but no message: it has no content");
        }
        self.start_message(document, events);
        self.stop_message(events);
    }

    fn done(&mut self, _events: &mut Vec<ModelEvent>) {}

    /// A stop reason with all blocks closed is the end in all but form: gateways leave the last event out.
    fn end(&mut self, events: &mut Vec<ModelEvent>) {
        if self.stop_word.is_some() && self.open.is_empty() {
            return self.stop_message(events);
        }
        fail(events, ErrorKind::StreamTruncated, "the connection ended before the answer was complete");
    }
}

fn end_block(open: OpenBlock<Content>, events: &mut Vec<ModelEvent>) {
    let OpenBlock { block, content, .. } = open;
    match content {
        Content::Text { citations } => {
            let replay = if citations.is_empty() { None } else { member("citations", &RawJson::listed(&citations)) };
            events.push(ModelEvent::TextEnd { block, replay });
        }
        Content::Thinking { signature } => {
            let replay = if signature.is_empty() { None } else { member("signature", &quoted(&signature)) };
            events.push(ModelEvent::ReasoningEnd { block, replay });
        }
        Content::Redacted { replay } => events.push(ModelEvent::ReasoningEnd { block, replay }),
        Content::Call { initial, has_delta, replay } => {
            if let Some(json) = initial.filter(|_| !has_delta) {
                events.push(ModelEvent::ToolInputDelta { block, json });
            }
            events.push(ModelEvent::ToolInputEnd { block, replay });
        }
        Content::Provider { kind, start, input, content, is_known } => {
            // A block that changed in a way this version does not understand cannot be sent back as it was.
            if let Some(replay) = completed(&start, &input, content.as_deref()).filter(|_| is_known) {
                events.push(ModelEvent::Provider { block, kind, replay });
            }
        }
    }
}

fn push_text(block: u32, text: Option<String>, events: &mut Vec<ModelEvent>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        events.push(ModelEvent::TextDelta { block, text });
    }
}

fn push_reasoning(block: u32, text: Option<String>, events: &mut Vec<ModelEvent>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        events.push(ModelEvent::ReasoningDelta { block, text });
    }
}

fn is_empty_object(json: &str) -> bool {
    Object::parse(json).is_ok_and(|object| object.iter().next().is_none())
}

/// An object with one member, as replay data.
fn member(name: &str, value: &str) -> Option<RawJson> {
    RawJson::parse(filled("{$:@}", &[name, value])).ok()
}

/// A block as it is sent back: the start event with what the deltas filled in.
fn completed(start: &RawJson, input: &str, content: Option<&str>) -> Option<RawJson> {
    if input.is_empty() && content.is_none() {
        return Some(start.clone());
    }
    let object = Object::parse(start.as_str()).ok()?;
    let mut block = "{}".to_owned();
    for (name, value) in object.iter() {
        match (name, content) {
            ("input", _) if !input.is_empty() => add_member(&mut block, name, input),
            ("content", Some(content)) => add_member(&mut block, name, &quoted(content)),
            _ => add_member(&mut block, name, value.get()),
        }
    }
    RawJson::parse(block).ok()
}
