//! The answer: a stream of chunks, or one completion.

use serde_json::value::RawValue;

use super::super::answer::{Protocol, fail};
use super::super::blocks::Numbering;
use super::super::event::ModelEvent;
use super::super::failure;
use super::super::http::ResponseHead;
use super::super::message::{File, FileData, Source, StopReason, Usage};
use super::super::prices::Dollars;
use super::super::request::ToolSpec;
use super::calls::Calls;
use super::details;
use super::scan::ChatDelta;
use crate::error::{Error, ErrorKind};
use crate::json::{Object, RawJson, Tree, filled, read_string};
use crate::ordered_map::OrderedSet;

/// What is known of one answer so far.
#[derive(Debug)]
pub(super) struct ChatDecoder {
    numbering: Numbering,
    /// The text or reasoning block that is being written. Calls are open beside it.
    open: Option<OpenBlock>,
    calls: Calls,
    usage: Usage,
    /// Whether the provider says what the answer costs.
    says_cost: bool,
    /// Whether reasoning goes back in the member that it came in.
    keeps_member: bool,
    /// That member.
    reasoning_member: Option<&'static str>,
    sources: OrderedSet<String>,
    refused: bool,
    finish: Option<String>,
    /// The word of the model behind a gateway.
    native_finish: Option<String>,
}

#[derive(Debug)]
struct OpenBlock {
    block: u32,
    kind: BlockKind,
    details: Vec<Tree>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Text,
    Refusal,
    Reasoning,
}

/// The members that servers write reasoning into. Some write it into several; the first that has any counts.
pub(super) const REASONING_MEMBERS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// The most sources of one answer; those behind it are left out.
const MAX_SOURCES: usize = 1024;

impl ChatDecoder {
    pub(super) fn new(tools: &[ToolSpec], says_cost: bool, keeps_member: bool) -> Self {
        Self {
            numbering: Numbering::default(),
            open: None,
            calls: Calls::new(tools),
            usage: Usage::default(),
            says_cost,
            keeps_member,
            reasoning_member: None,
            sources: OrderedSet::new(),
            refused: false,
            finish: None,
            native_finish: None,
        }
    }

    fn chunk(&mut self, payload: &Object<'_>, content: [&str; 2], events: &mut Vec<ModelEvent>) {
        let choices = payload.objects("choices");
        // Azure's first chunk is about the prompt and names neither answer nor model.
        if !choices.is_empty() || payload.string("id").is_some_and(|id| !id.is_empty()) {
            self.numbering.start(Some(payload), ["id", "model"], events);
        }
        let failure = choices.iter().find_map(|choice| self.choice(choice, content, events));
        self.citations(payload, events);
        let groq = payload.object("x_groq").and_then(|groq| groq.object("usage"));
        self.count(groq, events);
        self.count(payload.object("usage"), events);
        // What a failed answer used is told too, before its end.
        events.extend(failure.map(ModelEvent::Failed));
    }

    /// `content` is the member that holds what was said: Perplexity sends both, with the message so far in the one and
    /// what is new in the other. Gives the error of a choice that failed.
    fn choice(&mut self, choice: &Object<'_>, content: [&str; 2], events: &mut Vec<ModelEvent>) -> Option<Error> {
        // Of several answers to one question the first is taken; chunks hold them in any order.
        if choice.integer("index").unwrap_or(0) != 0 {
            return None;
        }
        let failure = failure::from_object(choice, &ResponseHead::default());
        if failure.is_some() {
            return failure;
        }
        if let Some(delta) = content.into_iter().find_map(|member| choice.object(member)) {
            self.delta(&delta, events);
        }
        self.count(choice.object("usage"), events);
        let word = |member| choice.string(member).filter(|word| !word.is_empty());
        // What comes after the first finish (usage, a repeated chunk) does not undo it.
        self.finish = self.finish.take().or_else(|| word("finish_reason"));
        self.native_finish = self.native_finish.take().or_else(|| word("native_finish_reason"));
        None
    }

    fn delta(&mut self, delta: &Object<'_>, events: &mut Vec<ModelEvent>) {
        self.reasoning(delta, events);
        match delta.get("content") {
            Some(content) if content.get().starts_with('[') => self.content_parts(delta, events),
            Some(content) => {
                let kind = if is_thought(delta) { BlockKind::Reasoning } else { BlockKind::Text };
                self.write(kind, read_string(content.get()), events);
            }
            None => {}
        }
        if let Some(refusal) = delta.string("refusal").filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            self.write(BlockKind::Refusal, Some(refusal), events);
        }
        let calls = delta.objects("tool_calls");
        let function = delta.object("function_call");
        if !calls.is_empty() || function.is_some() {
            self.close(events);
            for call in &calls {
                self.calls.delta(call, &mut self.numbering, events);
            }
            if let Some(function) = function {
                self.calls.function(&function, &mut self.numbering, events);
            }
        }
        for image in delta.objects("images") {
            push_image(&image, events);
        }
        for annotation in delta.objects("annotations") {
            if let Some(citation) = annotation.object("url_citation") {
                self.cite(citation.string("url"), citation.string("title"), annotation.raw("url_citation"), events);
            }
        }
    }

    /// The same text comes in up to three members of one delta.
    fn reasoning(&mut self, delta: &Object<'_>, events: &mut Vec<ModelEvent>) {
        let pieces: Vec<Tree> = delta.read("reasoning_details").unwrap_or_default();
        let named = REASONING_MEMBERS
            .into_iter()
            .find_map(|member| Some((member, delta.string(member).filter(|text| !text.is_empty())?)));
        self.reasoning_member = named.as_ref().map(|(member, _)| *member).or(self.reasoning_member);
        let text = named.map(|(_, text)| text).or_else(|| Some(details::text(&pieces)));
        self.write(BlockKind::Reasoning, text, events);
        if !pieces.is_empty() {
            self.open(BlockKind::Reasoning, events);
            if let Some(open) = &mut self.open {
                details::merge(&mut open.details, pieces);
            }
        }
    }

    /// Mistral's typed parts: text, and reasoning that is a list of parts itself.
    fn content_parts(&mut self, delta: &Object<'_>, events: &mut Vec<ModelEvent>) {
        for part in delta.objects("content") {
            match part.string("type").as_deref() {
                Some("thinking") => {
                    let texts: String =
                        part.objects("thinking").iter().filter_map(|part| part.string("text")).collect();
                    self.write(BlockKind::Reasoning, Some(texts), events);
                }
                Some("refusal") => {
                    self.refused = true;
                    self.write(BlockKind::Refusal, part.string("refusal"), events);
                }
                _ => self.write(BlockKind::Text, part.string("text"), events),
            }
        }
    }

    fn write(&mut self, kind: BlockKind, text: Option<String>, events: &mut Vec<ModelEvent>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        let block = self.open(kind, events);
        events.push(match kind {
            BlockKind::Text | BlockKind::Refusal => ModelEvent::TextDelta { block, text },
            BlockKind::Reasoning => ModelEvent::ReasoningDelta { block, text },
        });
    }

    fn open(&mut self, kind: BlockKind, events: &mut Vec<ModelEvent>) -> u32 {
        if let Some(open) = self.open.as_ref().filter(|open| open.kind == kind) {
            return open.block;
        }
        self.close(events);
        let block = self.numbering.next();
        self.open = Some(OpenBlock { block, kind, details: Vec::new() });
        events.push(match kind {
            BlockKind::Text | BlockKind::Refusal => ModelEvent::TextStart { block },
            BlockKind::Reasoning => ModelEvent::ReasoningStart { block },
        });
        block
    }

    fn close(&mut self, events: &mut Vec<ModelEvent>) {
        let Some(OpenBlock { block, kind, details }) = self.open.take() else { return };
        events.push(match kind {
            BlockKind::Text => ModelEvent::TextEnd { block, replay: None },
            BlockKind::Refusal => ModelEvent::TextEnd { block, replay: RawJson::parse(r#"{"refusal":true}"#).ok() },
            BlockKind::Reasoning => {
                let replay = match self.reasoning_member.filter(|_| self.keeps_member) {
                    Some(member) if details.is_empty() => RawJson::parse(filled(r#"{"member":$}"#, &[member])).ok(),
                    _ if details.is_empty() => None,
                    _ => replay(&details),
                };
                ModelEvent::ReasoningEnd { block, replay }
            }
        });
    }

    /// Citations at the top of a chunk; search servers repeat the whole list in each.
    fn citations(&mut self, payload: &Object<'_>, events: &mut Vec<ModelEvent>) {
        for result in payload.objects("search_results") {
            self.cite(result.string("url"), result.string("title"), None, events);
        }
        for citation in payload.array("citations").unwrap_or_default() {
            self.cite(read_string(citation.get()), None, None, events);
        }
    }

    fn cite(
        &mut self,
        url: Option<String>,
        title: Option<String>,
        replay: Option<RawJson>,
        events: &mut Vec<ModelEvent>,
    ) {
        let Some(url) = url.filter(|_| self.sources.len() < MAX_SOURCES) else { return };
        if self.sources.insert(url.clone()) {
            events.push(ModelEvent::Source(Source { url: Some(url), title, replay }));
        }
    }

    /// A running report: the last one counts.
    fn count(&mut self, usage: Option<Object<'_>>, events: &mut Vec<ModelEvent>) {
        let Some(usage) = usage else { return };
        let within = |details: &str, member: &str| usage.object(details).and_then(|details| details.integer(member));
        let counted = Usage {
            input: usage.integer("prompt_tokens").or(self.usage.input),
            output: usage.integer("completion_tokens").or(self.usage.output),
            cache_read: within("prompt_tokens_details", "cached_tokens")
                .or_else(|| usage.integer("prompt_cache_hit_tokens"))
                .or_else(|| usage.integer("cache_read_input_tokens"))
                .or_else(|| usage.integer("cached_tokens"))
                .or(self.usage.cache_read),
            cache_write: within("prompt_tokens_details", "cache_write_tokens")
                .or_else(|| usage.integer("cache_creation_input_tokens"))
                .or(self.usage.cache_write),
            reasoning: within("completion_tokens_details", "reasoning_tokens")
                .or_else(|| usage.integer("reasoning_tokens"))
                .or(self.usage.reasoning),
            cost: self.says_cost.then(|| cost(&usage)).flatten().or(self.usage.cost),
        };
        if counted != self.usage {
            self.usage = counted;
            events.push(ModelEvent::Usage(counted));
        }
    }

    fn stop(&mut self, events: &mut Vec<ModelEvent>) {
        self.close(events);
        self.calls.end(&mut self.numbering, events);
        let raw = self.finish.take();
        let reason = match raw.as_deref().map(str::to_ascii_lowercase).as_deref() {
            // Gateways say `tool_calls` even when the limit cut the call off; the model's own word tells.
            Some("tool_calls" | "function_call" | "stop") if self.was_cut() => StopReason::Length,
            Some("length" | "max_tokens" | "max_output_tokens" | "model_length" | "model_context_window_exceeded") => {
                StopReason::Length
            }
            Some(
                "content_filter" | "content_filtered" | "sensitive" | "safety" | "recitation" | "blocklist"
                | "prohibited_content" | "spii",
            ) => StopReason::ContentFilter,
            Some("refusal") => StopReason::Refusal,
            Some(
                "stop" | "tool_calls" | "tool_call" | "tool_use" | "function_call" | "eos" | "eos_token" | "end_turn"
                | "stop_sequence" | "complete" | "completed",
            )
            | None => {
                match (self.refused, self.calls.is_empty()) {
                    (true, true) => StopReason::Refusal,
                    (_, true) => StopReason::Stop,
                    // Some servers say `stop` though the model called tools.
                    (_, false) => StopReason::ToolUse,
                }
            }
            Some("insufficient_system_resource") => {
                return fail(events, ErrorKind::Overloaded, "the provider ran out of resources within the answer");
            }
            Some("error" | "abort" | "aborted" | "cancelled") => {
                return fail(events, ErrorKind::Server, "the provider failed within the answer");
            }
            Some("network_error") => {
                return fail(events, ErrorKind::Network, "the provider lost its connection within the answer");
            }
            // Google's own word behind its `function_call_filter: `.
            Some(word) if word.contains("malformed_function_call") || word.contains("unexpected_tool_call") => {
                let told = format!("the model wrote a tool call that the provider refused ({word})");
                return fail(events, ErrorKind::MalformedToolCall, &told);
            }
            Some(word) => {
                let told = format!("the model stopped for a reason that this version of crablet does not know: {word}");
                return fail(events, ErrorKind::Protocol, &told);
            }
        };
        events.push(ModelEvent::Stop { reason, raw });
    }

    fn was_cut(&self) -> bool {
        let native = self.native_finish.as_deref().unwrap_or_default().to_ascii_lowercase();
        matches!(native.as_str(), "length" | "max_tokens" | "max_output_tokens")
    }
}

impl Protocol for ChatDecoder {
    #[cfg_attr(crablet_small, optimize(speed))]
    fn scan(&mut self, payload: &str, events: &mut Vec<ModelEvent>) -> bool {
        // The first chunk names the answer, which the scanner does not read.
        let Some(delta) = self.numbering.is_started().then(|| ChatDelta::scan(payload)).flatten() else { return false };
        self.reasoning_member = delta.reasoning_member.or(self.reasoning_member);
        self.write(BlockKind::Reasoning, Some(delta.reasoning), events);
        self.write(BlockKind::Text, Some(delta.content), events);
        if let Some(call) = delta.call {
            self.close(events);
            self.calls.piece(call, &mut self.numbering, events);
        }
        true
    }

    fn payload(&mut self, payload: &Object<'_>, events: &mut Vec<ModelEvent>) {
        if payload.get("choices").is_none() && failure::is_report(payload) {
            return events.push(ModelEvent::Failed(failure::from_error_object(payload, &ResponseHead::default())));
        }
        // MiniMax ends a stream with the whole message that its chunks already said.
        let is_summary = !self.numbering.is_empty() && payload.string("object").as_deref() == Some("chat.completion");
        self.chunk(payload, if is_summary { ["delta", "delta"] } else { ["delta", "message"] }, events);
    }

    fn document(&mut self, document: &Object<'_>, events: &mut Vec<ModelEvent>) {
        if document.array("choices").is_none_or(|choices: Vec<&RawValue>| choices.is_empty()) {
            return fail(events, ErrorKind::MalformedStream, "the answer is JSON but no completion: it has no choices");
        }
        self.chunk(document, ["message", "delta"], events);
        self.stop(events);
    }

    fn done(&mut self, events: &mut Vec<ModelEvent>) {
        self.stop(events);
    }

    /// A finish reason without `[DONE]` is an end too; nothing at all is a cut.
    fn end(&mut self, events: &mut Vec<ModelEvent>) {
        if self.finish.is_some() {
            return self.stop(events);
        }
        fail(events, ErrorKind::StreamTruncated, "the connection ended before the answer was complete");
    }
}

/// What OpenRouter took for the answer, in credits, which are dollars. With a key of the caller's own that is only its fee.
fn cost(usage: &Object<'_>) -> Option<Dollars> {
    let is_own_key = usage.read::<bool>("is_byok").unwrap_or(false);
    let upstream = usage.object("cost_details").filter(|_| is_own_key);
    let upstream = upstream.and_then(|details| Dollars::read(&details, "upstream_inference_cost"));
    Some(Dollars::read(usage, "cost")?.plus(upstream.unwrap_or_default()))
}

/// Gemini marks its thoughts beside the text
/// (ai.google.dev/gemini-api/docs/openai, "Thinking").
fn is_thought(delta: &Object<'_>) -> bool {
    let google = delta.object("extra_content").and_then(|extra| extra.object("google"));
    google.and_then(|google| google.boolean("thought")).unwrap_or(false)
}

fn push_image(image: &Object<'_>, events: &mut Vec<ModelEvent>) {
    let Some(url) = image.object("image_url").and_then(|image| image.string("url")) else { return };
    let file = match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((media_type, data)) => {
            File { media_type: media_type.to_owned(), data: FileData::Base64(data.into()), name: None }
        }
        None => File { media_type: "image/*".to_owned(), data: FileData::Url(url), name: None },
    };
    events.push(ModelEvent::File(file));
}

fn replay(details: &[Tree]) -> Option<RawJson> {
    RawJson::parse(filled(r#"{"reasoning_details":@}"#, &[&details::json(details)])).ok()
}
