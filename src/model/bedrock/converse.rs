//! The events of a conversation turn, and the same as one document.

use super::super::answer::fail;
use super::super::blocks::{Numbering, OpenBlock, OpenBlocks};
use super::super::event::ModelEvent;
use super::super::files::with_base64;
use super::super::message::{File, FileData, Source, StopReason, Usage};
use super::super::names::ToolNames;
use super::super::request::ToolSpec;
use crate::error::ErrorKind;
use crate::json::{Object, RawJson, add_member, filled};

/// What is known of one answer so far.
#[derive(Debug)]
pub(super) struct ConverseDecoder {
    names: ToolNames,
    numbering: Numbering,
    open: OpenBlocks<Content>,
    has_calls: bool,
    stop_word: Option<String>,
}

#[derive(Debug)]
enum Content {
    Text,
    Reasoning {
        signature: String,
        redacted: String,
    },
    Call,
    /// A tool that runs at the provider (`toolUse`), or its result (`toolResult`).
    Provider {
        kind: &'static str,
        start: RawJson,
        input: String,
        content: Vec<RawJson>,
    },
}

impl ConverseDecoder {
    pub(super) fn new(tools: &[ToolSpec]) -> Self {
        Self {
            names: ToolNames::new(tools),
            numbering: Numbering::default(),
            open: OpenBlocks::default(),
            has_calls: false,
            stop_word: None,
        }
    }

    pub(super) fn event(&mut self, name: &str, payload: &Object<'_>, events: &mut Vec<ModelEvent>) {
        self.numbering.start(None, ["", ""], events);
        let index = payload.integer("contentBlockIndex").unwrap_or_default();
        match name {
            "contentBlockStart" => {
                if let Some(start) = payload.object("start") {
                    self.begin(index, &start, events);
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
        self.numbering.start(None, ["", ""], events);
        let message = document.object("output").and_then(|output| output.object("message")).unwrap_or_default();
        for (index, block) in (0..).zip(message.objects("content")) {
            self.begin(index, &block, events);
            if let Some(call) = block.object("toolUse") {
                let open = self.find(index, |content| matches!(content, Content::Call));
                if let (Some(block), Some(input)) = (open, call.get("input")) {
                    events.push(ModelEvent::ToolInputDelta { block, json: input.get().to_owned() });
                }
            } else if let Some(reasoning) = block.object("reasoningContent") {
                self.reason(index, &reasoning.object("reasoningText").unwrap_or(reasoning), events);
            } else if let Some(cited) = block.object("citationsContent") {
                cited.objects("content").iter().for_each(|text| self.change(index, text, events));
                cited.objects("citations").iter().for_each(|citation| cite(citation, events));
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
        for open in self.open.close_all() {
            end(open, events);
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

    /// Text and reasoning have no start and begin with their first delta.
    fn begin(&mut self, index: u64, start: &Object<'_>, events: &mut Vec<ModelEvent>) {
        let call = start.object("toolUse");
        if let Some(call) = call.as_ref().filter(|call| call.string("type").as_deref() != Some("server_tool_use")) {
            self.end_block(index, events);
            self.has_calls = true;
            let block = self.open_block(index, Content::Call, events);
            let id = call.string("toolUseId").filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call_{block}"));
            let name = self.names.registered(call.string("name").unwrap_or_default());
            return events.push(ModelEvent::ToolInputStart { block, id, name });
        }
        let kind = if call.is_some() { "toolUse" } else { "toolResult" };
        if let Some(start) = start.raw(kind) {
            self.end_block(index, events);
            let content = Content::Provider { kind, start, input: String::new(), content: Vec::new() };
            self.open_block(index, content, events);
        }
    }

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
            self.input(index, json, events);
        } else if let Some(citation) = delta.object("citation") {
            cite(&citation, events);
        } else if let Some(image) = delta.object("image") {
            events.extend(made_image(&image));
        } else if let Some(pieces) = delta.array("toolResult") {
            let open = self.open.find(index, |content| matches!(content, Content::Provider { .. }));
            if let Some(OpenBlock { content: Content::Provider { content, .. }, .. }) = open {
                content.extend(pieces.into_iter().map(RawJson::from));
            }
        }
    }

    fn input(&mut self, index: u64, json: String, events: &mut Vec<ModelEvent>) {
        let Some(open) = self.open.find(index, |_| true).filter(|_| !json.is_empty()) else { return };
        match &mut open.content {
            Content::Call => events.push(ModelEvent::ToolInputDelta { block: open.block, json }),
            Content::Provider { input, .. } => input.push_str(&json),
            Content::Text | Content::Reasoning { .. } => {}
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
        let open = self.open.find(index, |content| matches!(content, Content::Reasoning { .. }));
        if let Some(OpenBlock { content: Content::Reasoning { signature, redacted }, .. }) = open {
            signature.push_str(&reasoning.string("signature").unwrap_or_default());
            let more = reasoning.string("redactedContent").unwrap_or_default();
            *redacted = with_base64(redacted, &more).unwrap_or_default();
        }
    }

    fn open_block(&mut self, index: u64, content: Content, events: &mut Vec<ModelEvent>) -> u32 {
        let block = self.numbering.next();
        self.open.open(index, block, content, events);
        block
    }

    fn find(&mut self, index: u64, fits: impl Fn(&Content) -> bool) -> Option<u32> {
        self.open.find(index, fits).map(|open| open.block)
    }

    fn end_block(&mut self, index: u64, events: &mut Vec<ModelEvent>) {
        for open in self.open.close(index) {
            end(open, events);
        }
    }
}

fn end(open: OpenBlock<Content>, events: &mut Vec<ModelEvent>) {
    let OpenBlock { block, content, .. } = open;
    events.extend(match content {
        Content::Text => Some(ModelEvent::TextEnd { block, replay: None }),
        Content::Call => Some(ModelEvent::ToolInputEnd { block, replay: None }),
        Content::Reasoning { signature, redacted } => {
            Some(ModelEvent::ReasoningEnd { block, replay: replay(&signature, &redacted) })
        }
        Content::Provider { kind, start, input, content } => {
            let replay = completed(kind, &start, &input, &content);
            replay.map(|replay| ModelEvent::Provider { block, kind: kind.to_owned(), replay })
        }
    });
}

/// A block as it is sent back: the start event with what the deltas filled in.
fn completed(kind: &str, start: &RawJson, input: &str, content: &[RawJson]) -> Option<RawJson> {
    let mut block = start.as_str().to_owned();
    match (input, content) {
        ("", []) => {}
        ("", content) => add_member(&mut block, "content", &RawJson::listed(content)),
        (input, _) => add_member(&mut block, "input", input),
    }
    RawJson::parse(filled("{$:@}", &[kind, &block])).ok()
}

/// Web pages have an address, documents a title.
fn cite(citation: &Object<'_>, events: &mut Vec<ModelEvent>) {
    let web = citation.object("location").and_then(|location| location.object("web"));
    let url = web.and_then(|web| web.string("url")).or_else(|| citation.string("source"));
    events.push(ModelEvent::Source(Source { url, title: citation.string("title"), replay: None }));
}

fn made_image(image: &Object<'_>) -> Option<ModelEvent> {
    let data = image.object("source")?.string("bytes")?;
    let format = image.string("format").unwrap_or_else(|| "png".to_owned());
    let media_type = format!("image/{format}");
    Some(ModelEvent::File(File { media_type, data: FileData::Base64(data.into()), name: None }))
}

fn replay(signature: &str, redacted: &str) -> Option<RawJson> {
    let (name, value) = match (signature, redacted) {
        ("", "") => return None,
        ("", redacted) => ("redacted", redacted),
        (signature, _) => ("signature", signature),
    };
    RawJson::parse(filled("{$:$}", &[name, value])).ok()
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
