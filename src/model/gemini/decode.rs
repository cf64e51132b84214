//! The answer: a stream of responses, or one.

use serde_json::value::RawValue;

use super::super::answer::{Protocol, fail};
use super::super::blocks::Numbering;
use super::super::event::ModelEvent;
use super::super::message::{File, FileData, Source, StopReason, Usage};
use super::super::names::ToolNames;
use super::super::request::ToolSpec;
use super::partial;
use crate::error::ErrorKind;
use crate::json::{Members, Object, RawJson, Tree, quoted};
use crate::ordered_map::OrderedSet;

/// What is known of one answer so far.
#[derive(Debug)]
pub(super) struct ContentDecoder {
    names: ToolNames,
    numbering: Numbering,
    /// The text or reasoning block that is being written.
    open: Option<(u32, BlockKind)>,
    /// Calls whose input is whole. They end with the answer, since the provider can still call them malformed.
    calls: Vec<(u32, Option<RawJson>)>,
    /// The call whose arguments arrive in pieces.
    written: Option<WrittenCall>,
    /// How many elements of arrays were made up, since a piece named one further on.
    padding: usize,
    /// The addresses of the sources so far; each chunk repeats them.
    sources: OrderedSet<String>,
    usage: Usage,
    finish: Option<String>,
    finish_message: Option<String>,
    block_reason: Option<String>,
}

#[derive(Debug)]
struct WrittenCall {
    block: u32,
    arguments: Tree,
    replay: Option<RawJson>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Text,
    Reasoning,
}

/// The most calls of one answer; a stream that only ever makes calls must not fill the memory.
const MAX_CALLS: usize = 1024;

/// The most sources of one answer; those behind it are left out.
const MAX_SOURCES: usize = 1024;

impl ContentDecoder {
    pub(super) fn new(tools: &[ToolSpec]) -> Self {
        Self {
            names: ToolNames::new(tools),
            numbering: Numbering::default(),
            open: None,
            calls: Vec::new(),
            written: None,
            padding: 0,
            sources: OrderedSet::new(),
            usage: Usage::default(),
            finish: None,
            finish_message: None,
            block_reason: None,
        }
    }

    fn candidate(&mut self, candidate: &Object<'_>, events: &mut Vec<ModelEvent>) {
        if candidate.integer("index").unwrap_or(0) != 0 {
            return;
        }
        let content = candidate.object("content").unwrap_or_default();
        for part in content.array("parts").unwrap_or_default() {
            self.part(part, events);
        }
        if let Some(metadata) = candidate.object("groundingMetadata") {
            for chunk in metadata.objects("groundingChunks") {
                let kinds = ["web", "retrievedContext", "maps"];
                if let Some(source) = kinds.into_iter().find_map(|kind| chunk.object(kind)) {
                    self.cite(&source, events);
                }
            }
        }
        if let Some(metadata) = candidate.object("citationMetadata") {
            for member in ["citationSources", "citations"] {
                metadata.objects(member).iter().for_each(|source| self.cite(source, events));
            }
        }
        // Not the end: text can still follow.
        let word = candidate.string("finishReason").filter(|word| word != "FINISH_REASON_UNSPECIFIED");
        self.finish = word.or_else(|| self.finish.take());
        self.finish_message = candidate.string("finishMessage").or_else(|| self.finish_message.take());
    }

    fn cite(&mut self, source: &Object<'_>, events: &mut Vec<ModelEvent>) {
        let (url, title) = (source.string("uri"), source.string("title"));
        let Some(known_by) = url.clone().or_else(|| title.clone()) else { return };
        if self.sources.len() < MAX_SOURCES && self.sources.insert(known_by) {
            events.push(ModelEvent::Source(Source { url, title, replay: None }));
        }
    }

    fn part(&mut self, raw: &RawValue, events: &mut Vec<ModelEvent>) {
        let Ok(part) = Object::parse(raw.get()) else { return };
        let signature = part.get("thoughtSignature").filter(|value| value.get() != "null" && value.get() != "\"\"");
        if let Some(call) = part.object("functionCall") {
            return self.call(&call, signature, events);
        }
        if let Some(text) = part.string("text") {
            let is_thought = part.boolean("thought").unwrap_or(false);
            let kind = if is_thought { BlockKind::Reasoning } else { BlockKind::Text };
            return self.text(kind, text, signature, events);
        }
        if let Some(data) = part.object("inlineData") {
            self.close(None, events);
            if let (Some(media_type), Some(data)) = (data.string("mimeType"), data.string("data")) {
                let file = File { media_type, data: FileData::Base64(data.into()), name: None };
                events.push(ModelEvent::File(file));
            }
            // A picture with a signature is asked back when it is to be changed.
            if signature.is_some() {
                let block = self.numbering.next();
                events.push(ModelEvent::Provider { block, kind: "inlineData".to_owned(), replay: raw.into() });
            }
            return;
        }
        let kind = part.iter().map(|(name, _)| name).find(|name| !matches!(*name, "thought" | "thoughtSignature"));
        if let Some(kind) = kind {
            self.close(None, events);
            let block = self.numbering.next();
            events.push(ModelEvent::Provider { block, kind: kind.to_owned(), replay: raw.into() });
        }
    }

    /// A signature belongs to exactly the part it came with, so such a part is a block of its own.
    fn text(&mut self, kind: BlockKind, text: String, signature: Option<&RawValue>, events: &mut Vec<ModelEvent>) {
        if text.is_empty() && signature.is_none() {
            return;
        }
        let is_going_on = signature.is_none() && self.open.is_some_and(|(_, open)| open == kind);
        if !is_going_on {
            self.close(None, events);
            let block = self.numbering.next();
            self.open = Some((block, kind));
            events.push(match kind {
                BlockKind::Text => ModelEvent::TextStart { block },
                BlockKind::Reasoning => ModelEvent::ReasoningStart { block },
            });
        }
        if let Some((block, _)) = self.open.filter(|_| !text.is_empty()) {
            events.push(match kind {
                BlockKind::Text => ModelEvent::TextDelta { block, text },
                BlockKind::Reasoning => ModelEvent::ReasoningDelta { block, text },
            });
        }
        if signature.is_some() {
            self.close(replay(signature, None), events);
        }
    }

    fn close(&mut self, replay: Option<RawJson>, events: &mut Vec<ModelEvent>) {
        if let Some((block, kind)) = self.open.take() {
            events.push(match kind {
                BlockKind::Text => ModelEvent::TextEnd { block, replay },
                BlockKind::Reasoning => ModelEvent::ReasoningEnd { block, replay },
            });
        }
    }

    fn call(&mut self, call: &Object<'_>, signature: Option<&RawValue>, events: &mut Vec<ModelEvent>) {
        let goes_on = call.boolean("willContinue").unwrap_or(false);
        if let Some(name) = call.string("name").filter(|name| !name.is_empty()) {
            self.close(None, events);
            self.end_written(events);
            if self.calls.len() == MAX_CALLS {
                return fail(events, ErrorKind::Limit, "the answer has more tool calls than are allowed");
            }
            let block = self.numbering.next();
            let id = call.string("id").filter(|id| !id.is_empty());
            let replay = replay(signature, id.as_deref());
            let id = id.unwrap_or_else(|| format!("call_{block}"));
            events.push(ModelEvent::ToolInputStart { block, id, name: self.names.registered(name) });
            let arguments = call.get("args").filter(|value| value.get() != "null");
            if !goes_on && call.get("partialArgs").is_none() {
                if let Some(json) = arguments.map(|arguments| arguments.get().to_owned()) {
                    events.push(ModelEvent::ToolInputDelta { block, json });
                }
                return self.calls.push((block, replay));
            }
            let arguments = arguments.and_then(|raw| Tree::read(raw.get()).ok());
            let arguments = arguments.unwrap_or_else(|| Tree::Object(Members::new()));
            self.written = Some(WrittenCall { block, arguments, replay });
        }
        if let Some(written) = &mut self.written {
            for piece in call.objects("partialArgs") {
                partial::apply(&mut written.arguments, &piece, &mut self.padding);
            }
        }
        if !goes_on {
            self.end_written(events);
        }
    }

    fn end_written(&mut self, events: &mut Vec<ModelEvent>) {
        if let Some(WrittenCall { block, arguments, replay }) = self.written.take() {
            events.push(ModelEvent::ToolInputDelta { block, json: arguments.to_json() });
            self.calls.push((block, replay));
        }
    }

    /// Cumulative: the last one counts, and what it leaves out stays.
    fn count(&mut self, usage: Option<Object<'_>>, events: &mut Vec<ModelEvent>) {
        let Some(usage) = usage else { return };
        let counted = Usage {
            input: usage.integer("promptTokenCount").or(self.usage.input),
            output: usage.integer("candidatesTokenCount").or(self.usage.output),
            cache_read: usage.integer("cachedContentTokenCount").or(self.usage.cache_read),
            cache_write: None,
            reasoning: usage.integer("thoughtsTokenCount").or(self.usage.reasoning),
            cost: None,
        };
        if counted != self.usage {
            self.usage = counted;
            events.push(ModelEvent::Usage(counted));
        }
    }
}

impl Protocol for ContentDecoder {
    fn payload(&mut self, payload: &Object<'_>, events: &mut Vec<ModelEvent>) {
        self.numbering.start(Some(payload), ["responseId", "modelVersion"], events);
        for candidate in payload.objects("candidates") {
            self.candidate(&candidate, events);
        }
        let feedback = payload.object("promptFeedback").and_then(|feedback| feedback.string("blockReason"));
        self.block_reason = feedback.or_else(|| self.block_reason.take());
        self.count(payload.object("usageMetadata"), events);
    }

    fn document(&mut self, document: &Object<'_>, events: &mut Vec<ModelEvent>) {
        if document.get("candidates").is_none() && document.get("promptFeedback").is_none() {
            return fail(events, ErrorKind::MalformedStream, "the answer is JSON but has no candidates");
        }
        self.payload(document, events);
    }

    fn done(&mut self, _events: &mut Vec<ModelEvent>) {}

    /// The protocol has no last event: the answer is whole if it said why it ended.
    fn end(&mut self, events: &mut Vec<ModelEvent>) {
        self.close(None, events);
        let raw = self.finish.take();
        let reason = match (raw.as_deref(), self.block_reason.take()) {
            (None, Some(reason)) => {
                let told = format!("the provider's filter stopped the request: {reason}");
                return fail(events, ErrorKind::ContentFilter, &told);
            }
            (None, None) => {
                return fail(events, ErrorKind::StreamTruncated, "the connection ended before the answer was complete");
            }
            (Some("STOP"), _) if self.written.is_some() => {
                return fail(events, ErrorKind::MalformedToolCall, "the answer ended within the input of a tool call");
            }
            (Some("STOP"), _) if self.calls.is_empty() => StopReason::Stop,
            (Some("STOP"), _) => StopReason::ToolUse,
            (Some("MAX_TOKENS"), _) => StopReason::Length,
            (
                Some(
                    "SAFETY"
                    | "RECITATION"
                    | "BLOCKLIST"
                    | "PROHIBITED_CONTENT"
                    | "SPII"
                    | "LANGUAGE"
                    | "IMAGE_SAFETY"
                    | "IMAGE_PROHIBITED_CONTENT"
                    | "IMAGE_RECITATION"
                    | "MODEL_ARMOR"
                    | "ESCALATION",
                ),
                _,
            ) => StopReason::ContentFilter,
            (Some(word @ ("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS")), _) => {
                let detail = self.finish_message.take().unwrap_or_default();
                let told = format!("the model wrote a tool call that the provider refused ({word}) {detail}");
                return fail(events, ErrorKind::MalformedToolCall, told.trim_end());
            }
            (Some(word @ ("OTHER" | "IMAGE_OTHER" | "NO_IMAGE" | "MALFORMED_RESPONSE")), _) => {
                let detail = self.finish_message.take().unwrap_or_default();
                let told = format!("the provider broke the answer off ({word}) {detail}");
                return fail(events, ErrorKind::Server, told.trim_end());
            }
            (Some(word @ "MISSING_THOUGHT_SIGNATURE"), _) => {
                let told = format!("the provider refused the history, which lacks a thought signature ({word})");
                return fail(events, ErrorKind::BadRequest, &told);
            }
            (Some(word), _) => {
                let told = format!("the model stopped for a reason that this version of crablet does not know: {word}");
                return fail(events, ErrorKind::Protocol, &told);
            }
        };
        for (block, replay) in std::mem::take(&mut self.calls) {
            events.push(ModelEvent::ToolInputEnd { block, replay });
        }
        events.push(ModelEvent::Stop { reason, raw });
    }
}

fn replay(signature: Option<&RawValue>, id: Option<&str>) -> Option<RawJson> {
    let signature = signature.map(|signature| format!("\"thoughtSignature\":{}", signature.get()));
    let id = id.map(|id| format!("\"id\":{}", quoted(id)));
    let members: Vec<_> = signature.into_iter().chain(id).collect();
    if members.is_empty() { None } else { RawJson::parse(format!("{{{}}}", members.join(","))).ok() }
}
