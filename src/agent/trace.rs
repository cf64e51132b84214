//! What runs do, as spans with the names of OpenTelemetry's conventions for generative AI.
//!
//! A [`Trace`] is fed with events and gives spans once they are over; what sends them on is the caller's.

use std::borrow::Cow;
use std::collections::HashMap;

use super::event::{Event, EventKind, RunEnd, RunId};
use super::ids::mix;
use super::trace_conventions::{ConventionPart, in_conventions, joined, message, provider_name, usage};
use crate::error::Error;
use crate::json::RawJson;
use crate::model::{Body, CallId, Message, ModelRef, ToolResult};
use crate::time::Millis;

/// Something that took time.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// `invoke_agent {agent}`, `chat {model}` or `execute_tool {tool}`.
    pub name: String,
    /// Whether it is a call of another system: a model call.
    pub is_client: bool,
    /// 32 hexadecimal digits; the same for a run and its sub-agents, and for a run that is resumed elsewhere.
    pub trace_id: String,
    /// 16 hexadecimal digits.
    pub span_id: String,
    /// The span around it; `None` for the outermost run.
    pub parent_span_id: Option<String>,
    /// When it began.
    pub start: Millis,
    /// When it was over.
    pub end: Millis,
    /// `gen_ai.…`; `error.type` when it failed.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// What went wrong, when something did.
    pub error: Option<String>,
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Attribute {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(u64),
    /// Another number.
    Number(f64),
    /// A list of texts.
    Texts(Vec<String>),
}

/// What a trace says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceOptions {
    /// `gen_ai.agent.name`.
    pub agent_name: Option<String>,
    /// `gen_ai.conversation.id`.
    pub conversation_id: Option<String>,
    /// Whether spans hold what was said: prompts, answers, arguments and results, and the messages of errors. Without it
    /// nothing of the user's is in them.
    pub content: bool,
}

/// Makes spans of the events of one conversation.
///
/// A run is a span `invoke_agent`; within it are its model calls, one for each attempt, and its tool calls; within the call
/// of a sub-agent is its run. Usage is on model calls and runs. No span holds a key.
#[derive(Debug)]
pub struct Trace {
    options: TraceOptions,
    run: Option<(RunId, RunTrace, Ids)>,
}

impl Trace {
    /// A trace of nothing yet.
    pub fn new(options: TraceOptions) -> Self {
        Self { options, run: None }
    }

    /// The spans that are over with this event.
    pub fn event(&mut self, now: Millis, event: &Event) -> Vec<Span> {
        let mut spans = Vec::new();
        let is_known = matches!(&self.run, Some((run_id, ..)) if *run_id == event.run_id);
        if !is_known || event.kind == EventKind::RunStart {
            let mut ids = Ids::new(&event.run_id, now);
            let run = RunTrace::new(ids.open(now), None, self.options.agent_name.clone());
            self.run = Some((event.run_id.clone(), run, ids));
        }
        if let Some((_, run, ids)) = &mut self.run {
            run.take(&mut Recorder { now, ids, options: &self.options, spans: &mut spans }, &event.kind);
        }
        if matches!(event.kind, EventKind::RunEnd(_)) {
            self.run = None;
        }
        spans
    }
}

/// What a run needs to record something.
struct Recorder<'trace> {
    now: Millis,
    ids: &'trace mut Ids,
    options: &'trace TraceOptions,
    spans: &'trace mut Vec<Span>,
}

#[derive(Clone, Debug)]
struct Open {
    span_id: String,
    start: Millis,
}

#[derive(Debug)]
struct OpenTool {
    open: Open,
    name: String,
    input: Option<RawJson>,
}

/// A run and what is open in it.
#[derive(Debug)]
struct RunTrace {
    own: Open,
    parent: Option<String>,
    agent_name: Option<String>,
    prompts: Vec<Attribute>,
    /// The model call of the step, and when its answer was over.
    chat: Option<(Open, Option<Millis>)>,
    tools: HashMap<CallId, OpenTool>,
    within: HashMap<CallId, Box<Self>>,
}

impl RunTrace {
    fn new(own: Open, parent: Option<String>, agent_name: Option<String>) -> Self {
        let (tools, within) = (HashMap::new(), HashMap::new());
        Self { own, parent, agent_name, prompts: Vec::new(), chat: None, tools, within }
    }

    fn take(&mut self, recorder: &mut Recorder<'_>, event: &EventKind) {
        let now = recorder.now;
        match event {
            EventKind::MessageAdded(message) if recorder.options.content => {
                self.prompts.push(Attribute::Text(in_conventions(message)));
            }
            EventKind::StepStart => self.chat = Some((recorder.ids.open(now), None)),
            EventKind::StepRetry { delay, error, .. } => {
                self.fail_chat(recorder, error.kind().as_str(), error.message());
                // The next attempt begins after the wait.
                self.chat = Some((Open { start: now.after(*delay), ..recorder.ids.open(now) }, None));
            }
            EventKind::ToolCall { call_id, tool_name, input, .. } => {
                if let Some((_, end)) = &mut self.chat {
                    end.get_or_insert(now);
                }
                let (open, input) = (recorder.ids.open(now), Some(input.clone()));
                self.tools.insert(call_id.clone(), OpenTool { open, name: tool_name.clone(), input });
            }
            EventKind::ToolStart { call_id, input, .. } => {
                if let Some(tool) = self.tools.get_mut(call_id) {
                    tool.open.start = now;
                    tool.input = Some(input.clone());
                }
            }
            EventKind::SubAgentEvent { call_id, event } => {
                let tool = self.tools.get(call_id);
                let parent = tool.map_or(&self.own, |tool| &tool.open).span_id.clone();
                let name = tool.map(|tool| tool.name.clone());
                let within = self
                    .within
                    .entry(call_id.clone())
                    .or_insert_with(|| Box::new(Self::new(recorder.ids.open(now), Some(parent), name)));
                within.take(recorder, &event.kind);
                if matches!(event.kind, EventKind::RunEnd(_)) {
                    self.within.remove(call_id);
                }
            }
            EventKind::ToolResult(result) => self.end_tool(recorder, result),
            EventKind::StepEnd { message, .. } => self.end_chat(recorder, message),
            EventKind::RunEnd(end) => self.end(recorder, end),
            _ => {}
        }
    }

    fn end_tool(&mut self, recorder: &mut Recorder<'_>, result: &ToolResult) {
        let tool = self.tools.remove(&result.call_id).unwrap_or_else(|| OpenTool {
            open: recorder.ids.open(recorder.now),
            name: result.tool_name.clone(),
            input: None,
        });
        let mut attributes = vec![
            ("gen_ai.operation.name", text("execute_tool")),
            ("gen_ai.tool.name", text(&*tool.name)),
            ("gen_ai.tool.call.id", text(result.call_id.as_str())),
            ("gen_ai.tool.type", text("function")),
        ];
        let told = joined(&result.content);
        if recorder.options.content {
            let input = tool.input.as_ref().map_or("null", RawJson::as_str);
            attributes.push(("gen_ai.tool.call.arguments", text(input)));
            let output = result.output.as_ref().map_or(Cow::Borrowed(&*told), |output| output.as_str().into());
            attributes.push(("gen_ai.tool.call.result", text(output)));
        }
        let failed = format!("the call of {} failed", tool.name);
        let error = result.is_error.then_some(("tool_error", &*failed, &*told));
        self.give(recorder, format!("execute_tool {}", tool.name), false, tool.open, None, attributes, error);
    }

    fn end_chat(&mut self, recorder: &mut Recorder<'_>, message: &Message) {
        let (Some((open, end)), Body::Assistant(answer)) = (self.chat.take(), &message.body) else { return };
        let ModelRef { provider, id, .. } = &answer.model;
        let mut attributes = vec![
            ("gen_ai.operation.name", text("chat")),
            ("gen_ai.provider.name", text(provider_name(provider))),
            ("gen_ai.request.model", text(&**id)),
            ("gen_ai.response.finish_reasons", reasons(answer.stop_reason.as_str())),
        ];
        attributes.extend(usage(&answer.usage));
        if recorder.options.content {
            attributes.push(("gen_ai.output.messages", text(format!("[{}]", in_conventions(message)))));
        }
        self.give(recorder, format!("chat {id}"), true, open, end, attributes, None);
    }

    fn fail_chat(&mut self, recorder: &mut Recorder<'_>, kind: &str, message: &str) {
        let Some((open, _)) = self.chat.take() else { return };
        let attributes = vec![("gen_ai.operation.name", text("chat"))];
        let error = Some((kind, "the model call failed", message));
        self.give(recorder, "chat".to_owned(), true, open, None, attributes, error);
    }

    fn end(&mut self, recorder: &mut Recorder<'_>, end: &RunEnd) {
        match (&end.message, &end.error) {
            (Some(message), None) => self.end_chat(recorder, message),
            (_, Some(error)) => self.fail_chat(recorder, error.kind().as_str(), error.message()),
            (None, None) => self.fail_chat(recorder, end.reason.as_str(), end.reason.as_str()),
        }
        let mut attributes = vec![("gen_ai.operation.name", text("invoke_agent"))];
        attributes.extend(self.agent_name.as_deref().map(|name| ("gen_ai.agent.name", text(name))));
        if let (None, Some(id)) = (&self.parent, &recorder.options.conversation_id) {
            attributes.push(("gen_ai.conversation.id", text(&**id)));
        }
        attributes.push(("gen_ai.response.finish_reasons", reasons(end.reason.as_str())));
        attributes.extend(usage(&end.usage));
        if recorder.options.content {
            let prompts: Vec<&str> = self.prompts.iter().filter_map(Attribute::as_text).collect();
            attributes.push(("gen_ai.input.messages", text(format!("[{}]", prompts.join(",")))));
            let answer = message("assistant", &[ConventionPart::text(&end.text)]);
            attributes.push(("gen_ai.output.messages", text(format!("[{answer}]"))));
        }
        let name = match &self.agent_name {
            Some(name) => format!("invoke_agent {name}"),
            None => "invoke_agent".to_owned(),
        };
        let ended = end.error.as_ref().map(|error| format!("the run ended with {}", error.kind().as_str()));
        let error = end.error.as_ref().zip(ended.as_deref());
        let error = error.map(|(error, ended): (&Error, &str)| (error.kind().as_str(), ended, error.message()));
        self.give(recorder, name, false, self.own.clone(), None, attributes, error);
    }

    /// `error` is its type, what may be said of it always, and what it says.
    #[expect(clippy::too_many_arguments, reason = "they are the parts of a span")]
    fn give(
        &self,
        recorder: &mut Recorder<'_>,
        name: String,
        is_client: bool,
        open: Open,
        end: Option<Millis>,
        mut attributes: Vec<(&'static str, Attribute)>,
        error: Option<(&str, &str, &str)>,
    ) {
        attributes.extend(error.map(|(kind, ..)| ("error.type", text(kind))));
        let is_own = open.span_id == self.own.span_id;
        let end = end.unwrap_or(recorder.now);
        recorder.spans.push(Span {
            name,
            is_client,
            trace_id: recorder.ids.trace_id.clone(),
            parent_span_id: if is_own { self.parent.clone() } else { Some(self.own.span_id.clone()) },
            span_id: open.span_id,
            // A wait may have been cut short, and a clock set back.
            start: open.start.min(end),
            end,
            attributes,
            error: error.map(|(_, said, says)| if recorder.options.content { says } else { said }.to_owned()),
        });
    }
}

impl Attribute {
    fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

fn text(value: impl Into<String>) -> Attribute {
    Attribute::Text(value.into())
}

fn reasons(reason: &str) -> Attribute {
    Attribute::Texts(vec![reason.to_owned()])
}

/// The ids of a run's trace. They follow from its id and the time, so that a run that is resumed has one trace and new
/// spans.
#[derive(Debug)]
struct Ids {
    trace_id: String,
    seed: u64,
    count: u64,
}

impl Ids {
    fn new(run_id: &RunId, now: Millis) -> Self {
        let digits = run_id.0.rsplit('_').next().unwrap_or_default();
        let seed = u64::from_str_radix(digits, 16).unwrap_or_else(|_| crate::model::hash(&run_id.0));
        let trace_id = hexadecimal(mix(seed, 1)) + &hexadecimal(mix(seed, 2));
        Self { trace_id, seed: mix(seed, now.0.wrapping_add(3)), count: 0 }
    }

    fn open(&mut self, start: Millis) -> Open {
        self.count = self.count.wrapping_add(1);
        Open { span_id: hexadecimal(mix(self.seed, self.count)), start }
    }
}

/// No id of OpenTelemetry is zero.
fn hexadecimal(value: u64) -> String {
    format!("{:016x}", value.max(1))
}
