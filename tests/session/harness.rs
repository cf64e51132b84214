//! A host without I/O: it performs nothing, remembers what is asked, and answers what the test says, at a time of its own.

use std::sync::Arc;

use crablet::agent::{
    Agent, Approval, Effect, Event, EventKind, HookId, HookReply, Input, InputError, ModelCallId, RunEnd, Session,
    Status, TimerId, ToolDefinition, ToolOutput,
};
use crablet::json::RawJson;
use crablet::model::{
    Body, CallId, Content, Message, Model, ModelEvent, ModelRequest, Part, StopReason, ToolResult, Usage,
};
use crablet::{Error, Millis};

/// A session and everything that it has asked for and shown.
pub(crate) struct Harness {
    pub(crate) session: Session,
    pub(crate) now: Millis,
    pub(crate) effects: Vec<Effect>,
    pub(crate) events: Vec<Event>,
    /// Timers that are set and not yet due.
    pub(crate) timers: Vec<(TimerId, Millis)>,
}

impl Harness {
    pub(crate) fn new(agent: Agent) -> Self {
        Self::of(Session::new(Arc::new(agent), 42), Millis(1_000_000))
    }

    pub(crate) fn of(session: Session, now: Millis) -> Self {
        let mut harness = Self { session, now, effects: Vec::new(), events: Vec::new(), timers: Vec::new() };
        harness.drain();
        harness
    }

    /// A session that has begun to work on a prompt.
    pub(crate) fn prompted(agent: Agent) -> Self {
        let mut harness = Self::new(agent);
        harness.give(Input::Prompt(text("hello")));
        harness
    }

    /// What a fresh process makes of the saved text.
    pub(crate) fn restored(&self, agent: Agent) -> Self {
        let session = Session::restore(&self.session.snapshot(), Arc::new(agent), self.now).unwrap();
        Self::of(session, self.now)
    }

    pub(crate) fn try_give(&mut self, input: Input) -> Result<(), InputError> {
        if let Input::Timer { timer } = &input {
            self.timers.retain(|(id, _)| id != timer);
        }
        let outcome = self.session.handle(self.now, input);
        self.drain();
        outcome
    }

    pub(crate) fn give(&mut self, input: Input) {
        self.try_give(input).unwrap();
    }

    /// The latest model call.
    pub(crate) fn model_call(&self) -> (ModelCallId, Arc<ModelRequest>) {
        let call = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::CallModel { call, request } => Some((*call, request.clone())),
            _ => None,
        });
        call.expect("the model was called")
    }

    pub(crate) fn model_calls(&self) -> usize {
        self.effects.iter().filter(|effect| matches!(effect, Effect::CallModel { .. })).count()
    }

    pub(crate) fn stream(&mut self, events: Vec<ModelEvent>) {
        let (call, _) = self.model_call();
        self.give(Input::ModelEvents { call, events });
    }

    pub(crate) fn end_stream(&mut self) {
        let (call, _) = self.model_call();
        self.give(Input::ModelEnded { call, outcome: Ok(()) });
    }

    pub(crate) fn fail_stream(&mut self, error: Error) {
        let (call, _) = self.model_call();
        self.give(Input::ModelEnded { call, outcome: Err(error) });
    }

    /// A whole answer of text.
    pub(crate) fn answer(&mut self, words: &str) {
        self.stream([text_block(0, words), stop(StopReason::Stop)].concat());
        self.end_stream();
    }

    /// A whole answer of calls.
    pub(crate) fn answer_calls(&mut self, calls: &[(&str, &str, &str)]) {
        let blocks = calls.iter().zip(0..).map(|((id, name, input), block)| call_block(block, id, name, input));
        let mut events: Vec<ModelEvent> = blocks.flatten().collect();
        events.extend(stop(StopReason::ToolUse));
        self.stream(events);
        self.end_stream();
    }

    pub(crate) fn tool_ends(&mut self, call_id: &str, output: ToolOutput) {
        self.give(Input::ToolEnded { call_id: CallId::new(call_id), output });
    }

    pub(crate) fn decide(&mut self, call_id: &str, decision: Approval) {
        self.give(Input::Approval { call_id: CallId::new(call_id), decision, input_hash: None });
    }

    pub(crate) fn reply(&mut self, reply: Result<HookReply, String>) {
        let hook = self.hook();
        self.give(Input::HookReplied { hook, reply });
    }

    /// The latest question to a hook.
    pub(crate) fn hook(&self) -> HookId {
        let hook = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::AskHook { hook, .. } => Some(*hook),
            _ => None,
        });
        hook.expect("a hook was asked")
    }

    pub(crate) fn save(&mut self) {
        let seq = self.checkpoint();
        self.give(Input::CheckpointSaved { seq });
    }

    /// The latest checkpoint that was asked for.
    pub(crate) fn checkpoint(&self) -> u64 {
        let seq = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Checkpoint { seq, .. } => Some(*seq),
            _ => None,
        });
        seq.expect("a checkpoint was asked for")
    }

    /// Lets time pass; timers go off when they are due.
    pub(crate) fn pass(&mut self, milliseconds: u64) {
        let until = self.now.after(milliseconds);
        while let Some(index) = (0..self.timers.len())
            .filter(|index| self.timers[*index].1 <= until)
            .min_by_key(|index| self.timers[*index].1)
        {
            let (timer, at) = self.timers.remove(index);
            self.now = self.now.max(at);
            self.give(Input::Timer { timer });
        }
        self.now = until;
    }

    /// The calls that were handed out, in order.
    pub(crate) fn handed_out(&self) -> Vec<&str> {
        let handed_out = self.effects.iter().filter_map(|effect| match effect {
            Effect::CallTool { call_id, .. } => Some(call_id.as_str()),
            _ => None,
        });
        handed_out.collect()
    }

    pub(crate) fn cancelled(&self) -> Vec<&str> {
        let cancelled = self.effects.iter().filter_map(|effect| match effect {
            Effect::CancelTool { call_id } => Some(call_id.as_str()),
            _ => None,
        });
        cancelled.collect()
    }

    /// The names of the events so far.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.events.iter().map(|event| event.kind.name()).collect()
    }

    /// Forgets what was asked and shown so far.
    pub(crate) fn forget(&mut self) {
        self.effects.clear();
        self.events.clear();
    }

    pub(crate) fn run_end(&self) -> &RunEnd {
        let ends: Vec<&RunEnd> = self.run_ends();
        assert_eq!(ends.len(), 1, "exactly one run-end: {:?}", self.names());
        ends[0]
    }

    pub(crate) fn run_ends(&self) -> Vec<&RunEnd> {
        let ends = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::RunEnd(end) => Some(end),
            _ => None,
        });
        ends.collect()
    }

    /// The results that were shown, in the order in which they came.
    pub(crate) fn results(&self) -> Vec<Arc<ToolResult>> {
        let results = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::ToolResult(result) => Some(result.clone()),
            _ => None,
        });
        results.collect()
    }

    /// The conversation in short: `user(hello)`, `assistant(text; call a)`, `tool(a ok; b error)`.
    pub(crate) fn transcript(&self) -> Vec<String> {
        self.session.history().iter().map(|message| in_short(message)).collect()
    }

    pub(crate) fn status(&self) -> Status {
        self.session.status()
    }

    fn drain(&mut self) {
        while let Some(effect) = self.session.poll_effect() {
            let effect = innermost(effect);
            match &effect {
                Effect::SetTimer { timer, at } => {
                    self.timers.retain(|(id, _)| id != timer);
                    self.timers.push((*timer, *at));
                }
                Effect::ClearTimer { timer } => self.timers.retain(|(id, _)| id != timer),
                _ => {}
            }
            self.effects.push(effect);
        }
        while let Some(event) = self.session.poll_event() {
            self.events.push(event);
        }
    }
}

/// The effect without the sub-agents that it is for: the test performs for all of them.
pub(crate) fn innermost(effect: Effect) -> Effect {
    match effect {
        Effect::OfSubAgent { effect, .. } => innermost(*effect),
        effect => effect,
    }
}

/// An agent with these tools, whose model is the test itself.
pub(crate) fn agent(tools: Vec<ToolDefinition>) -> Agent {
    let model = Model { provider: "test".into(), id: "scripted".into(), ..Model::function("test") };
    Agent { tools: tools.into_iter().map(Arc::new).collect(), ..Agent::new(model) }
}

pub(crate) fn tool(name: &str) -> ToolDefinition {
    ToolDefinition::new(name, "A tool of the test.", raw(r#"{"type":"object"}"#))
}

pub(crate) fn raw(json: &str) -> RawJson {
    RawJson::parse(json).unwrap()
}

pub(crate) fn text(words: &str) -> Vec<Content> {
    vec![Content::Text(words.into())]
}

pub(crate) fn text_block(block: u32, words: &str) -> Vec<ModelEvent> {
    vec![
        ModelEvent::TextStart { block },
        ModelEvent::TextDelta { block, text: words.into() },
        ModelEvent::TextEnd { block, replay: None },
    ]
}

pub(crate) fn call_block(block: u32, id: &str, name: &str, input: &str) -> Vec<ModelEvent> {
    vec![
        ModelEvent::ToolInputStart { block, id: id.into(), name: name.into() },
        ModelEvent::ToolInputDelta { block, json: input.into() },
        ModelEvent::ToolInputEnd { block, replay: None },
    ]
}

pub(crate) fn stop(reason: StopReason) -> Vec<ModelEvent> {
    vec![
        ModelEvent::Usage(Usage { input: Some(10), output: Some(5), ..Usage::default() }),
        ModelEvent::Stop { reason, raw: None },
    ]
}

pub(crate) fn in_short(message: &Message) -> String {
    match &message.body {
        Body::User(user) => format!("user({})", content_in_short(&user.content)),
        Body::Assistant(assistant) => {
            let parts: Vec<String> = assistant.content.iter().map(part_in_short).collect();
            format!("assistant({})", parts.join("; "))
        }
        Body::Tool(tool) => {
            let results: Vec<String> = tool.results.iter().map(result_in_short).collect();
            format!("tool({})", results.join("; "))
        }
        _ => "?".into(),
    }
}

fn part_in_short(part: &Part) -> String {
    match part {
        Part::Text { text, .. } => text.clone(),
        Part::Reasoning { text, .. } => format!("thinking {text}"),
        Part::ToolCall(call) => format!("call {}", call.call_id),
        _ => "?".into(),
    }
}

fn result_in_short(result: &ToolResult) -> String {
    format!("{} {}", result.call_id, if result.is_error { "error" } else { "ok" })
}

pub(crate) fn content_in_short(content: &[Content]) -> String {
    let texts = content.iter().map(|content| match content {
        Content::Text(text) => text.as_str(),
        _ => "?",
    });
    texts.collect::<Vec<_>>().join(" ")
}
