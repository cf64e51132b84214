//! The answer: a stream of events about output items, or one response.

use serde_json::value::RawValue;

use super::super::answer::{Protocol, fail};
use super::super::blocks::{Numbering, OpenBlock, OpenBlocks};
use super::super::event::ModelEvent;
use super::super::failure;
use super::super::http::ResponseHead;
use super::super::message::{File, FileData, Source, StopReason, Usage};
use super::super::names::ToolNames;
use super::super::request::ToolSpec;
use crate::error::ErrorKind;
use crate::json::{Object, RawJson, filled};
use crate::ordered_map::OrderedSet;

/// What is known of one answer so far.
///
/// An item is known by its `output_index`: gateways change the ids from event to event.
#[derive(Debug)]
pub(super) struct ResponseDecoder {
    names: ToolNames,
    numbering: Numbering,
    open: OpenBlocks<Content>,
    /// The item that the events of servers without `output_index` are about.
    current: u64,
    /// The items that are complete, so that none is read a second time from the final response.
    complete: OrderedSet<u64>,
    /// Calls of tools that take free text. Whether they ran at the provider is told by what follows.
    custom_calls: Vec<(u64, RawJson)>,
    has_calls: bool,
    refused: bool,
}

#[derive(Debug)]
struct Content {
    kind: BlockKind,
    /// The place of a text within its message.
    place: u64,
    /// Whether any delta came. What an item says at its end counts only where none did.
    has_delta: bool,
    /// The arguments of a call so far. What an item says beyond them at its end is added.
    arguments: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Text,
    Refusal,
    Reasoning,
    Call,
}

/// The most items of one answer; a stream that only ever makes items must not fill the memory.
const MAX_ITEMS: usize = 4096;

const CUSTOM_CALL: &str = "custom_tool_call";

impl ResponseDecoder {
    pub(super) fn new(tools: &[ToolSpec]) -> Self {
        Self {
            names: ToolNames::new(tools),
            numbering: Numbering::default(),
            open: OpenBlocks::default(),
            current: 0,
            complete: OrderedSet::new(),
            custom_calls: Vec::new(),
            has_calls: false,
            refused: false,
        }
    }

    /// The item that an event is about. Servers that number none send the events of one item after those of another.
    fn item(&mut self, payload: &Object<'_>, event: &str) -> u64 {
        if let Some(index) = payload.integer("output_index") {
            return index;
        }
        let is_next = event == "response.output_item.added" && !self.numbering.is_empty();
        if is_next || self.complete.contains(&self.current) {
            self.current += 1;
        }
        self.current
    }

    /// A block that is open, or begins now.
    fn open(
        &mut self,
        item: u64,
        place: u64,
        kind: BlockKind,
        events: &mut Vec<ModelEvent>,
    ) -> Option<&mut OpenBlock<Content>> {
        let is_same = |content: &Content| (content.place, content.kind) == (place, kind);
        if self.open.find(item, is_same).is_none() {
            if kind != BlockKind::Call {
                self.keep_custom_calls(events);
            }
            let block = self.numbering.next();
            match kind {
                BlockKind::Text | BlockKind::Refusal => events.push(ModelEvent::TextStart { block }),
                BlockKind::Reasoning => events.push(ModelEvent::ReasoningStart { block }),
                // Announced by the caller, who knows id and name.
                BlockKind::Call => {}
            }
            self.open.open(item, block, Content { kind, place, has_delta: false, arguments: String::new() }, events);
        }
        self.open.find(item, is_same)
    }

    fn delta(&mut self, item: u64, payload: &Object<'_>, kind: BlockKind, events: &mut Vec<ModelEvent>) {
        let Some(text) = payload.string("delta").filter(|text| !text.is_empty()) else { return };
        if let Some(open) = self.block(item, payload, kind, events) {
            write(open, text, events);
        }
    }

    /// What is said at once: the whole of what the deltas said, from servers that send none. LM Studio leaves it out of the
    /// item at its end.
    fn whole(
        &mut self,
        item: u64,
        text: Option<String>,
        payload: &Object<'_>,
        kind: BlockKind,
        events: &mut Vec<ModelEvent>,
    ) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        write_if_silent(self.block(item, payload, kind, events), Some(text), events);
    }

    /// The block that an event about a part of an item goes on with.
    fn block(
        &mut self,
        item: u64,
        payload: &Object<'_>,
        kind: BlockKind,
        events: &mut Vec<ModelEvent>,
    ) -> Option<&mut OpenBlock<Content>> {
        // Of an item that is complete everything was said.
        if self.complete.contains(&item) {
            return None;
        }
        match kind {
            BlockKind::Text | BlockKind::Refusal => {
                self.refused |= kind == BlockKind::Refusal;
                self.open(item, payload.integer("content_index").unwrap_or_default(), kind, events)
            }
            BlockKind::Reasoning => self.open(item, 0, kind, events),
            // Arguments of a call that was never announced come whole with the item.
            BlockKind::Call => self.open.find(item, |content| content.kind == kind),
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

    fn begin_call(
        &mut self,
        index: u64,
        item: &Object<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Option<&mut OpenBlock<Content>> {
        if self.open.find(index, |content| content.kind == BlockKind::Call).is_none() {
            let name = item.string("name").filter(|name| !name.is_empty())?;
            let id = item.string("call_id").or_else(|| item.string("id")).unwrap_or_else(|| format!("call_{index}"));
            self.has_calls = true;
            let name = self.names.registered(name);
            let block = self.open(index, 0, BlockKind::Call, events)?.block;
            events.push(ModelEvent::ToolInputStart { block, id, name });
        }
        self.open.find(index, |content| content.kind == BlockKind::Call)
    }

    /// An item is complete; it holds everything that its deltas said.
    fn end_item(&mut self, index: u64, raw: &RawValue, events: &mut Vec<ModelEvent>) {
        let Ok(item) = Object::parse(raw.get()) else { return };
        if !self.complete.insert(index) {
            return;
        }
        if self.complete.len() > MAX_ITEMS {
            return fail(events, ErrorKind::Limit, "the answer has more items than are allowed");
        }
        let mut replay = None;
        match item.string("type").as_deref() {
            Some("message") => {
                self.end_message(index, &item, events);
                // Whether it is said on the way or is the answer. Models that are not told it back stop too early.
                let phase = item.string("phase");
                replay = phase.and_then(|phase| RawJson::parse(filled(r#"{"phase":$}"#, &[&phase])).ok());
            }
            Some("reasoning") => {
                let texts = |list: &str| -> String {
                    item.objects(list).iter().filter_map(|part| part.string("text")).collect()
                };
                let text = Some(texts("summary")).filter(|text| !text.is_empty()).unwrap_or_else(|| texts("content"));
                write_if_silent(self.open(index, 0, BlockKind::Reasoning, events), Some(text), events);
                replay = Some(RawJson::from(raw));
            }
            Some("function_call") => {
                write_if_silent(self.begin_call(index, &item, events), item.string("arguments"), events);
            }
            Some(CUSTOM_CALL) => self.custom_calls.push((index, raw.into())),
            Some(kind) => {
                if let Some(file) = made_image(&item) {
                    events.push(ModelEvent::File(file));
                }
                let block = self.numbering.next();
                events.push(ModelEvent::Provider { block, kind: kind.to_owned(), replay: raw.into() });
            }
            None => {}
        }
        for open in self.open.close(index) {
            end(&open, replay.clone(), events);
        }
    }

    /// A model that goes on after a call has its result, so the tool ran at the provider, as all of xAI's do.
    fn keep_custom_calls(&mut self, events: &mut Vec<ModelEvent>) {
        for (_, replay) in std::mem::take(&mut self.custom_calls) {
            let block = self.numbering.next();
            events.push(ModelEvent::Provider { block, kind: CUSTOM_CALL.to_owned(), replay });
        }
    }

    /// Nothing followed: these calls are the caller's to run. Every input is an object here, whose `input` is the text.
    fn begin_custom_calls(&mut self, events: &mut Vec<ModelEvent>) {
        for (index, raw) in std::mem::take(&mut self.custom_calls) {
            let item = Object::parse(raw.as_str()).unwrap_or_default();
            let input = item.get("input").map(|input| format!("{{\"input\":{}}}", input.get()));
            write_if_silent(self.begin_call(index, &item, events), input, events);
        }
    }

    fn end_message(&mut self, index: u64, item: &Object<'_>, events: &mut Vec<ModelEvent>) {
        for (place, part) in (0..).zip(item.objects("content")) {
            let (kind, text) = match part.string("type").as_deref() {
                Some("refusal") => (BlockKind::Refusal, part.string("refusal")),
                _ => (BlockKind::Text, part.string("text")),
            };
            self.refused |= kind == BlockKind::Refusal;
            if text.as_deref().is_some_and(|text| !text.is_empty()) {
                write_if_silent(self.open(index, place, kind, events), text, events);
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

    /// The final response: what no event told before, the count, and why it ended.
    fn end_response(&mut self, response: &Object<'_>, events: &mut Vec<ModelEvent>) {
        let output = response.array("output").unwrap_or_default();
        // Where as many items came one by one, the list is a repetition, whatever numbers they had.
        if output.len() > self.complete.len() {
            for (index, item) in (0..).zip(output) {
                self.end_item(index, item, events);
            }
        }
        self.begin_custom_calls(events);
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
            ("queued" | "in_progress", _) => {
                return fail(
                    events,
                    ErrorKind::StreamTruncated,
                    "the provider answered before the response was complete",
                );
            }
            _ if self.has_calls => StopReason::ToolUse,
            _ if self.refused => StopReason::Refusal,
            _ => StopReason::Stop,
        };
        for open in self.open.close_all() {
            end(&open, None, events);
        }
        let raw = detail.map_or(status.clone(), |detail| format!("{status}:{detail}"));
        events.push(ModelEvent::Stop { reason, raw: Some(raw) });
    }
}

impl Protocol for ResponseDecoder {
    fn payload(&mut self, payload: &Object<'_>, events: &mut Vec<ModelEvent>) {
        if !self.numbering.is_started() {
            self.numbering.start(payload.object("response").as_ref(), ["id", "model"], events);
        }
        let event = payload.string("type").unwrap_or_default();
        let index = self.item(payload, &event);
        match event.as_str() {
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
            "response.output_text.delta" => self.delta(index, payload, BlockKind::Text, events),
            "response.refusal.delta" => self.delta(index, payload, BlockKind::Refusal, events),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.delta(index, payload, BlockKind::Reasoning, events);
            }
            "response.function_call_arguments.delta" => self.delta(index, payload, BlockKind::Call, events),
            "response.output_text.done" => {
                self.whole(index, payload.string("text"), payload, BlockKind::Text, events);
            }
            "response.refusal.done" => {
                self.whole(index, payload.string("refusal"), payload, BlockKind::Refusal, events);
            }
            "response.function_call_arguments.done" => {
                self.whole(index, payload.string("arguments"), payload, BlockKind::Call, events);
            }
            // The second is what some servers call the first.
            "response.completed"
            | "response.done"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => match payload.object("response") {
                Some(response) => self.end_response(&response, events),
                None => fail(events, ErrorKind::MalformedStream, "the last event of the answer holds no response"),
            },
            _ => {}
        }
    }

    fn document(&mut self, document: &Object<'_>, events: &mut Vec<ModelEvent>) {
        if document.array("output").is_none() {
            return fail(events, ErrorKind::MalformedStream, "the answer is JSON but no response: it has no output");
        }
        self.numbering.start(Some(document), ["id", "model"], events);
        self.end_response(document, events);
    }

    fn done(&mut self, _events: &mut Vec<ModelEvent>) {}

    fn end(&mut self, events: &mut Vec<ModelEvent>) {
        fail(events, ErrorKind::StreamTruncated, "the connection ended before the answer was complete");
    }
}

fn write(open: &mut OpenBlock<Content>, text: String, events: &mut Vec<ModelEvent>) {
    if text.is_empty() {
        return;
    }
    open.content.has_delta = true;
    if open.content.kind == BlockKind::Call {
        open.content.arguments.push_str(&text);
    }
    let block = open.block;
    events.push(match open.content.kind {
        BlockKind::Text | BlockKind::Refusal => ModelEvent::TextDelta { block, text },
        BlockKind::Reasoning => ModelEvent::ReasoningDelta { block, text },
        BlockKind::Call => ModelEvent::ToolInputDelta { block, json: text },
    });
}

fn write_if_silent(open: Option<&mut OpenBlock<Content>>, text: Option<String>, events: &mut Vec<ModelEvent>) {
    let (Some(open), Some(text)) = (open, text) else { return };
    if !open.content.has_delta {
        write(open, text, events);
    } else if let Some(rest) =
        text.strip_prefix(&open.content.arguments).filter(|_| open.content.kind == BlockKind::Call)
    {
        // Servers stream only a beginning.
        write(open, rest.to_owned(), events);
    }
}

fn end(open: &OpenBlock<Content>, replay: Option<RawJson>, events: &mut Vec<ModelEvent>) {
    let block = open.block;
    events.push(match open.content.kind {
        BlockKind::Text => ModelEvent::TextEnd { block, replay },
        BlockKind::Refusal => ModelEvent::TextEnd { block, replay: RawJson::parse(r#"{"refusal":true}"#).ok() },
        BlockKind::Reasoning => ModelEvent::ReasoningEnd { block, replay },
        BlockKind::Call => ModelEvent::ToolInputEnd { block, replay: None },
    });
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
