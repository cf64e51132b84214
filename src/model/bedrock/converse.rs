//! The events of a conversation turn, and the same as one document.

use super::super::answer::fail;
use super::super::body::json;
use super::super::event::ModelEvent;
use super::super::message::{StopReason, Usage};
use super::super::names::ToolNames;
use super::super::request::ToolSpec;
use crate::error::ErrorKind;
use crate::json::{Object, RawJson};

/// What is known of one answer so far.
#[derive(Debug)]
pub(super) struct ConverseDecoder {
    names: ToolNames,
    is_started: bool,
    next_block: u32,
    open: Vec<OpenBlock>,
    has_calls: bool,
    stop_word: Option<String>,
}

#[derive(Debug)]
struct OpenBlock {
    index: u64,
    block: u32,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Text,
    Reasoning { signature: String, redacted: String },
    Call,
}

/// The most blocks that are open at once; a stream that only ever opens them must not fill the memory.
const MAX_OPEN_BLOCKS: usize = 1024;

impl ConverseDecoder {
    pub(super) fn new(tools: &[ToolSpec]) -> Self {
        Self {
            names: ToolNames::new(tools),
            is_started: false,
            next_block: 0,
            open: Vec::new(),
            has_calls: false,
            stop_word: None,
        }
    }

    pub(super) fn event(&mut self, name: &str, payload: &Object<'_>, events: &mut Vec<ModelEvent>) {
        self.start(events);
        let index = payload.integer("contentBlockIndex").unwrap_or_default();
        match name {
            "contentBlockStart" => {
                if let Some(call) = payload.object("start").and_then(|start| start.object("toolUse")) {
                    self.begin_call(index, &call, events);
                }
            }
            "contentBlockDelta" => {
                if let Some(delta) = payload.object("delta") {
                    self.change(index, &delta, events);
                }
            }
            "contentBlockStop" => self.end_block(index, events),
            "messageStop" => self.stop_word = payload.string("stopReason"),
            "metadata" => count(payload, events),
            _ => {}
        }
    }

    pub(super) fn document(&mut self, document: &Object<'_>, events: &mut Vec<ModelEvent>) {
        self.start(events);
        let message = document.object("output").and_then(|output| output.object("message")).unwrap_or_default();
        for (index, block) in (0..).zip(message.objects("content")) {
            if let Some(call) = block.object("toolUse") {
                self.begin_call(index, &call, events);
                if let (Some(input), Some(open)) = (call.get("input"), self.open.last()) {
                    let (block, json) = (open.block, input.get().to_owned());
                    events.push(ModelEvent::ToolInputDelta { block, json });
                }
            } else if let Some(reasoning) = block.object("reasoningContent") {
                self.reason(index, &reasoning.object("reasoningText").unwrap_or(reasoning), events);
            } else {
                self.change(index, &block, events);
            }
            self.end_block(index, events);
        }
        count(document, events);
        self.stop_word = document.string("stopReason");
        self.end(events);
    }

    /// The count comes after the stop, so the answer ends with the bytes.
    pub(super) fn end(&mut self, events: &mut Vec<ModelEvent>) {
        let Some(raw) = self.stop_word.take() else {
            return fail(events, ErrorKind::StreamTruncated, "the connection ended before the answer was complete");
        };
        let open: Vec<_> = self.open.iter().map(|open| open.index).collect();
        for index in open {
            self.end_block(index, events);
        }
        let reason = match raw.as_str() {
            "end_turn" | "stop_sequence" if self.has_calls => StopReason::ToolUse,
            "end_turn" | "stop_sequence" => StopReason::Stop,
            "tool_use" => StopReason::ToolUse,
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "guardrail_intervened" | "content_filtered" => StopReason::ContentFilter,
            "refusal" => StopReason::Refusal,
            "malformed_model_output" | "malformed_tool_use" => {
                let told = format!("the model wrote a tool call that the provider refused ({raw})");
                return fail(events, ErrorKind::MalformedToolCall, &told);
            }
            word => {
                let told = format!("the model stopped for a reason that this version of crablet does not know: {word}");
                return fail(events, ErrorKind::Protocol, &told);
            }
        };
        events.push(ModelEvent::Stop { reason, raw: Some(raw) });
    }

    fn start(&mut self, events: &mut Vec<ModelEvent>) {
        if !self.is_started {
            self.is_started = true;
            events.push(ModelEvent::Started { response_id: None, model: None });
        }
    }

    fn begin_call(&mut self, index: u64, call: &Object<'_>, events: &mut Vec<ModelEvent>) {
        self.end_block(index, events);
        self.has_calls = true;
        let block = self.open_block(index, Content::Call, events);
        let id = call.string("toolUseId").filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call_{block}"));
        let name = self.names.registered(call.string("name").unwrap_or_default());
        events.push(ModelEvent::ToolInputStart { block, id, name });
    }

    /// Text and reasoning begin with their first delta: the service sends no start for them.
    fn change(&mut self, index: u64, delta: &Object<'_>, events: &mut Vec<ModelEvent>) {
        if let Some(text) = delta.string("text").filter(|text| !text.is_empty()) {
            let known = self.find(index, |content| matches!(content, Content::Text));
            let block = known.unwrap_or_else(|| {
                let block = self.open_block(index, Content::Text, events);
                events.push(ModelEvent::TextStart { block });
                block
            });
            events.push(ModelEvent::TextDelta { block, text });
        } else if let Some(reasoning) = delta.object("reasoningContent") {
            self.reason(index, &reasoning, events);
        } else if let Some(json) = delta.object("toolUse").and_then(|call| call.string("input")) {
            let known = self.find(index, |content| matches!(content, Content::Call));
            if let Some(block) = known.filter(|_| !json.is_empty()) {
                events.push(ModelEvent::ToolInputDelta { block, json });
            }
        }
    }

    fn reason(&mut self, index: u64, reasoning: &Object<'_>, events: &mut Vec<ModelEvent>) {
        let known = self.find(index, |content| matches!(content, Content::Reasoning { .. }));
        let block = known.unwrap_or_else(|| {
            let content = Content::Reasoning { signature: String::new(), redacted: String::new() };
            let block = self.open_block(index, content, events);
            events.push(ModelEvent::ReasoningStart { block });
            block
        });
        if let Some(text) = reasoning.string("text").filter(|text| !text.is_empty()) {
            events.push(ModelEvent::ReasoningDelta { block, text });
        }
        let open = self.open.iter_mut().find(|open| open.block == block).map(|open| &mut open.content);
        if let Some(Content::Reasoning { signature, redacted }) = open {
            signature.push_str(&reasoning.string("signature").unwrap_or_default());
            redacted.push_str(&reasoning.string("redactedContent").unwrap_or_default());
        }
    }

    fn open_block(&mut self, index: u64, content: Content, events: &mut Vec<ModelEvent>) -> u32 {
        let block = self.next_block;
        self.next_block += 1;
        self.open.push(OpenBlock { index, block, content });
        if self.open.len() > MAX_OPEN_BLOCKS {
            fail(events, ErrorKind::MalformedStream, "more content blocks are open than any answer has");
        }
        block
    }

    fn find(&self, index: u64, fits: impl Fn(&Content) -> bool) -> Option<u32> {
        self.open.iter().rev().find(|open| open.index == index && fits(&open.content)).map(|open| open.block)
    }

    fn end_block(&mut self, index: u64, events: &mut Vec<ModelEvent>) {
        let (ended, open): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.open).into_iter().partition(|open| open.index == index);
        self.open = open;
        for OpenBlock { block, content, .. } in ended {
            events.push(match content {
                Content::Text => ModelEvent::TextEnd { block, replay: None },
                Content::Call => ModelEvent::ToolInputEnd { block, replay: None },
                Content::Reasoning { signature, redacted } => {
                    ModelEvent::ReasoningEnd { block, replay: replay(&signature, &redacted) }
                }
            });
        }
    }
}

fn replay(signature: &str, redacted: &str) -> Option<RawJson> {
    let (name, value) = match (signature, redacted) {
        ("", "") => return None,
        ("", redacted) => ("redacted", redacted),
        (signature, _) => ("signature", signature),
    };
    RawJson::parse(format!("{{\"{name}\":{}}}", json(value).ok()?)).ok()
}

fn count(payload: &Object<'_>, events: &mut Vec<ModelEvent>) {
    if let Some(usage) = payload.object("usage") {
        events.push(ModelEvent::Usage(Usage {
            input: usage.integer("inputTokens"),
            output: usage.integer("outputTokens"),
            cache_read: usage.integer("cacheReadInputTokens"),
            cache_write: usage.integer("cacheWriteInputTokens"),
            reasoning: None,
            cost: None,
        }));
    }
}
