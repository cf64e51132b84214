//! The answer: a stream of events about output items, or one response.

use serde_json::value::RawValue;

use super::super::answer::{Protocol, fail};
use super::super::event::ModelEvent;
use super::super::failure;
use super::super::http::ResponseHead;
use super::super::message::{File, FileData, Source, StopReason, Usage};
use super::super::names::ToolNames;
use super::super::request::ToolSpec;
use crate::error::ErrorKind;
use crate::json::{Object, RawJson};

/// What is known of one answer so far.
///
/// An item is known by its `output_index`: gateways change the ids from event to event.
#[derive(Debug)]
pub(super) struct ResponseDecoder {
    names: ToolNames,
    is_started: bool,
    next_block: u32,
    open: Vec<OpenBlock>,
    /// The items that are complete, so that none is read a second time from the final response.
    complete: Vec<u64>,
    has_calls: bool,
    refused: bool,
}

#[derive(Debug)]
struct OpenBlock {
    item: u64,
    /// The place of a text within its message.
    content: u64,
    block: u32,
    kind: BlockKind,
    /// Whether any delta came. What an item says at its end counts only where none did.
    has_delta: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Text,
    Refusal,
    Reasoning,
    Call,
}

/// The most blocks that are open at once; a stream that only ever opens them must not fill the memory.
const MAX_OPEN_BLOCKS: usize = 4096;

impl ResponseDecoder {
    pub(super) fn new(tools: &[ToolSpec]) -> Self {
        Self {
            names: ToolNames::new(tools),
            is_started: false,
            next_block: 0,
            open: Vec::new(),
            complete: Vec::new(),
            has_calls: false,
            refused: false,
        }
    }

    fn start(&mut self, response: Option<Object<'_>>, events: &mut Vec<ModelEvent>) {
        if self.is_started {
            return;
        }
        self.is_started = true;
        let member = |name| response.as_ref().and_then(|response| response.string(name));
        events.push(ModelEvent::Started { response_id: member("id"), model: member("model") });
    }

    /// The position in `open` of a block, begun if it is not there.
    fn open(&mut self, item: u64, content: u64, kind: BlockKind, events: &mut Vec<ModelEvent>) -> usize {
        let is_same = |open: &OpenBlock| (open.item, open.content, open.kind) == (item, content, kind);
        if let Some(position) = self.open.iter().rposition(is_same) {
            return position;
        }
        let block = self.next_block;
        self.next_block += 1;
        match kind {
            BlockKind::Text | BlockKind::Refusal => events.push(ModelEvent::TextStart { block }),
            BlockKind::Reasoning => events.push(ModelEvent::ReasoningStart { block }),
            // Announced by the caller, who knows id and name.
            BlockKind::Call => {}
        }
        self.open.push(OpenBlock { item, content, block, kind, has_delta: false });
        if self.open.len() > MAX_OPEN_BLOCKS {
            fail(events, ErrorKind::MalformedStream, "more output items are open than any answer has");
        }
        self.open.len() - 1
    }

    fn delta(&mut self, payload: &Object<'_>, kind: BlockKind, events: &mut Vec<ModelEvent>) {
        let Some(text) = payload.string("delta").filter(|text| !text.is_empty()) else { return };
        let item = payload.integer("output_index").unwrap_or_default();
        let content = match kind {
            BlockKind::Text | BlockKind::Refusal => payload.integer("content_index").unwrap_or_default(),
            BlockKind::Reasoning | BlockKind::Call => 0,
        };
        let is_known = self.open.iter().any(|open| open.item == item && open.kind == kind);
        // Arguments of a call that was never announced come whole with the item.
        if kind == BlockKind::Call && !is_known {
            return;
        }
        let position = self.open(item, content, kind, events);
        self.write(position, text, events);
    }

    fn write(&mut self, position: usize, text: String, events: &mut Vec<ModelEvent>) {
        let Some(open) = self.open.get_mut(position).filter(|_| !text.is_empty()) else { return };
        open.has_delta = true;
        let block = open.block;
        events.push(match open.kind {
            BlockKind::Text | BlockKind::Refusal => ModelEvent::TextDelta { block, text },
            BlockKind::Reasoning => ModelEvent::ReasoningDelta { block, text },
            BlockKind::Call => ModelEvent::ToolInputDelta { block, json: text },
        });
    }

    fn write_if_silent(&mut self, position: usize, text: Option<String>, events: &mut Vec<ModelEvent>) {
        if self.open.get(position).is_some_and(|open| !open.has_delta) {
            self.write(position, text.unwrap_or_default(), events);
        }
    }

    fn begin_item(&mut self, index: u64, item: &Object<'_>, events: &mut Vec<ModelEvent>) {
        match item.string("type").as_deref() {
            Some("function_call") => {
                self.begin_call(index, item, events);
            }
            Some("reasoning") => {
                self.open(index, 0, BlockKind::Reasoning, events);
            }
            _ => {}
        }
    }

    fn begin_call(&mut self, index: u64, item: &Object<'_>, events: &mut Vec<ModelEvent>) -> Option<usize> {
        let known = self.open.iter().position(|open| open.item == index && open.kind == BlockKind::Call);
        if known.is_some() {
            return known;
        }
        let name = item.string("name").filter(|name| !name.is_empty())?;
        let id = item.string("call_id").or_else(|| item.string("id")).unwrap_or_else(|| format!("call_{index}"));
        self.has_calls = true;
        let position = self.open(index, 0, BlockKind::Call, events);
        let block = self.open.get(position)?.block;
        events.push(ModelEvent::ToolInputStart { block, id, name: self.names.registered(name) });
        Some(position)
    }

    /// An item is complete; it holds everything that its deltas said.
    fn end_item(&mut self, index: u64, raw: &RawValue, events: &mut Vec<ModelEvent>) {
        let Ok(item) = Object::parse(raw.get()) else { return };
        if self.complete.contains(&index) {
            return;
        }
        self.complete.push(index);
        let mut replay = None;
        match item.string("type").as_deref() {
            Some("message") => self.end_message(index, &item, events),
            Some("reasoning") => {
                let texts = |list: &str| -> String {
                    item.objects(list).iter().filter_map(|part| part.string("text")).collect()
                };
                let text = Some(texts("summary")).filter(|text| !text.is_empty()).unwrap_or_else(|| texts("content"));
                let position = self.open(index, 0, BlockKind::Reasoning, events);
                self.write_if_silent(position, Some(text), events);
                replay = Some(RawJson::from(raw));
            }
            Some("function_call") => {
                if let Some(position) = self.begin_call(index, &item, events) {
                    self.write_if_silent(position, item.string("arguments"), events);
                }
            }
            Some(kind) => {
                if let Some(file) = made_image(&item) {
                    events.push(ModelEvent::File(file));
                }
                let block = self.next_block;
                self.next_block += 1;
                events.push(ModelEvent::Provider { block, kind: kind.to_owned(), replay: raw.into() });
            }
            None => {}
        }
        self.close(|open| open.item == index, replay, events);
    }

    fn end_message(&mut self, index: u64, item: &Object<'_>, events: &mut Vec<ModelEvent>) {
        for (content, part) in (0..).zip(item.objects("content")) {
            let (kind, text) = match part.string("type").as_deref() {
                Some("refusal") => (BlockKind::Refusal, part.string("refusal")),
                _ => (BlockKind::Text, part.string("text")),
            };
            self.refused |= kind == BlockKind::Refusal;
            if text.as_deref().is_some_and(|text| !text.is_empty()) {
                let position = self.open(index, content, kind, events);
                self.write_if_silent(position, text, events);
            }
            for annotation in part.objects("annotations") {
                events.push(ModelEvent::Source(Source {
                    url: annotation.string("url"),
                    title: annotation.string("title").or_else(|| annotation.string("filename")),
                    replay: None,
                }));
            }
        }
    }

    fn close(&mut self, fits: impl Fn(&OpenBlock) -> bool, replay: Option<RawJson>, events: &mut Vec<ModelEvent>) {
        let (closed, open) = std::mem::take(&mut self.open).into_iter().partition(|open| fits(open));
        self.open = open;
        let closed: Vec<OpenBlock> = closed;
        for OpenBlock { block, kind, .. } in closed {
            events.push(match kind {
                BlockKind::Text => ModelEvent::TextEnd { block, replay: None },
                BlockKind::Refusal => ModelEvent::TextEnd { block, replay: RawJson::parse(r#"{"refusal":true}"#).ok() },
                BlockKind::Reasoning => ModelEvent::ReasoningEnd { block, replay: replay.clone() },
                BlockKind::Call => ModelEvent::ToolInputEnd { block, replay: None },
            });
        }
    }

    /// The final response: what no event told before, the count, and why it ended.
    fn end_response(&mut self, response: &Object<'_>, events: &mut Vec<ModelEvent>) {
        for (index, item) in (0..).zip(response.array("output").unwrap_or_default()) {
            self.end_item(index, item, events);
        }
        if let Some(usage) = response.object("usage") {
            events.push(ModelEvent::Usage(count(&usage)));
        }
        let status = response.string("status").unwrap_or_else(|| "completed".to_owned());
        let detail = response.object("incomplete_details").and_then(|details| details.string("reason"));
        let reason = match (status.as_str(), detail.as_deref()) {
            ("incomplete", Some("content_filter")) => StopReason::ContentFilter,
            ("incomplete", _) => StopReason::Length,
            ("failed" | "cancelled", _) => {
                return events.push(ModelEvent::Failed(failure::from_error_object(response, &ResponseHead::default())));
            }
            _ if self.has_calls => StopReason::ToolUse,
            _ if self.refused => StopReason::Refusal,
            _ => StopReason::Stop,
        };
        self.close(|_| true, None, events);
        let raw = detail.map_or(status.clone(), |detail| format!("{status}:{detail}"));
        events.push(ModelEvent::Stop { reason, raw: Some(raw) });
    }
}

impl Protocol for ResponseDecoder {
    fn payload(&mut self, payload: &Object<'_>, events: &mut Vec<ModelEvent>) {
        self.start(payload.object("response"), events);
        let index = payload.integer("output_index").unwrap_or_default();
        match payload.string("type").as_deref().unwrap_or_default() {
            "response.output_item.added" => {
                if let Some(item) = payload.object("item") {
                    self.begin_item(index, &item, events);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = payload.get("item") {
                    self.end_item(index, item, events);
                }
            }
            "response.output_text.delta" => self.delta(payload, BlockKind::Text, events),
            "response.refusal.delta" => self.delta(payload, BlockKind::Refusal, events),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.delta(payload, BlockKind::Reasoning, events);
            }
            "response.function_call_arguments.delta" => self.delta(payload, BlockKind::Call, events),
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                match payload.object("response") {
                    Some(response) => self.end_response(&response, events),
                    None => fail(events, ErrorKind::MalformedStream, "the last event of the answer holds no response"),
                }
            }
            _ => {}
        }
    }

    fn document(&mut self, document: &Object<'_>, events: &mut Vec<ModelEvent>) {
        if document.array("output").is_none() {
            return fail(events, ErrorKind::MalformedStream, "the answer is JSON but no response: it has no output");
        }
        self.start(Object::parse("{}").ok(), events);
        self.end_response(document, events);
    }

    fn done(&mut self, _events: &mut Vec<ModelEvent>) {}

    fn end(&mut self, events: &mut Vec<ModelEvent>) {
        fail(events, ErrorKind::StreamTruncated, "the connection ended before the answer was complete");
    }
}

fn count(usage: &Object<'_>) -> Usage {
    let within = |details: &str, member: &str| usage.object(details).and_then(|details| details.integer(member));
    Usage {
        input: usage.integer("input_tokens"),
        output: usage.integer("output_tokens"),
        cache_read: within("input_tokens_details", "cached_tokens"),
        cache_write: within("input_tokens_details", "cache_write_tokens"),
        reasoning: within("output_tokens_details", "reasoning_tokens"),
        cost: None,
    }
}

fn made_image(item: &Object<'_>) -> Option<File> {
    let data = item.string("result").filter(|_| item.string("type").as_deref() == Some("image_generation_call"))?;
    let format = item.string("output_format").unwrap_or_else(|| "png".to_owned());
    Some(File { media_type: format!("image/{format}"), data: FileData::Base64(data.into()), name: None })
}
