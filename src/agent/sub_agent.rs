//! Sub-agents: a tool that is an agent itself. Its call is worked on by a session of its own, nested inside the call, so
//! that it is saved, restored, aborted and asked for approvals with the run that made the call.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::call::{Call, Stage};
use super::context::Context;
use super::definition::{Agent, ToolDefinition};
use super::effect::Effect;
use super::event::{EndReason, EventKind, RunEnd};
use super::input::{Input, InputError, ToolOutput};
use super::session::{Session, Status};
use crate::json::{Object, RawJson};
use crate::model::{Content, StopReason, Usage};
use crate::time::Millis;

/// The agent that works on the calls of a tool. Two are equal when they are the same one.
#[derive(Clone, Debug)]
pub struct SubAgent {
    agent: Arc<Agent>,
    work: &'static dyn Work,
}

impl SubAgent {
    /// The agent of this definition.
    pub fn new(agent: Arc<Agent>) -> Self {
        Self { agent, work: WORK }
    }

    /// Its definition.
    pub fn definition(&self) -> &Arc<Agent> {
        &self.agent
    }

    /// Begins a session for a call.
    pub(super) fn begin(&self, call: &mut Call, context: &mut Context<'_>, input: RawJson) {
        self.work.begin(call, context, self.agent.clone(), input);
    }
}

impl PartialEq for SubAgent {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.agent, &other.agent)
    }
}

impl ToolDefinition {
    /// A tool whose calls an agent works on. It takes `{"prompt": "…"}`; the answer of the agent is the result.
    ///
    /// With another `input_schema` the agent is given the input as JSON text, unless it has a `prompt` that is text.
    pub fn sub_agent(name: impl Into<String>, description: impl Into<String>, agent: Arc<Agent>) -> Self {
        let schema = RawJson::parse(INPUT_SCHEMA).unwrap_or_else(|_| RawValue::TRUE.into());
        Self { agent: Some(SubAgent::new(agent)), ..Self::new(name, description, schema) }
    }
}

/// The session that works on a call.
#[derive(Debug)]
pub(super) struct Nested {
    pub(super) session: Box<Session>,
    work: &'static dyn Work,
}

impl Nested {
    pub(super) fn new(session: Session) -> Self {
        Self { session: Box::new(session), work: WORK }
    }
}

/// What is done with the session of a call. Reached by way of a [`SubAgent`] and of the session that it began, so that a program
/// without sub-agents links nothing of it.
trait Work: fmt::Debug + Send + Sync {
    fn begin(&self, call: &mut Call, context: &mut Context<'_>, agent: Arc<Agent>, input: RawJson);
    fn awaits(&self, session: &Session, input: &Input) -> bool;
    fn hand_down(&self, call: &mut Call, context: &mut Context<'_>, input: Input) -> Result<(), InputError>;
    fn advance(&self, call: &mut Call, context: &mut Context<'_>);
    fn reopen(&self, call: &mut Call, context: &mut Context<'_>);
    fn abort(&self, call: &mut Call, context: &mut Context<'_>, reason: &str);
}

const WORK: &dyn Work = &InSession;

#[derive(Debug)]
struct InSession;

impl Work for InSession {
    fn begin(&self, call: &mut Call, context: &mut Context<'_>, agent: Arc<Agent>, input: RawJson) {
        let given = call.validated.as_ref().unwrap_or(&input);
        let prompt = Object::parse(given.as_str()).ok().and_then(|input| input.string("prompt"));
        let prompt = vec![Content::Text(prompt.unwrap_or_else(|| given.as_str().to_owned()))];
        let seed = context.conversation.ids.fresh_seed();
        call.session = Some(Nested::new(Session::nested(agent, seed)));
        call.stage = Stage::Delegated { input };
        self.hand_down(call, context, Input::Prompt(prompt)).unwrap_or_else(|refused| {
            call.session = None;
            call.conclude(context, ToolOutput::error(refused.to_string()));
        });
    }

    fn awaits(&self, session: &Session, input: &Input) -> bool {
        session.awaits(input)
    }

    fn hand_down(&self, call: &mut Call, context: &mut Context<'_>, input: Input) -> Result<(), InputError> {
        let lent = call.session.as_ref().map(|nested| nested.session.lent());
        let outcome = work_within(call, context, |session, now| session.handle(now, input));
        let outcome = outcome.unwrap_or(Err(InputError::Unexpected));
        if let (Err(_), Some(nested), Some(lent)) = (&outcome, &mut call.session, lent) {
            // What was refused has changed nothing, not even what was lent for it.
            nested.session.take_back(lent);
        }
        outcome
    }

    fn advance(&self, call: &mut Call, context: &mut Context<'_>) {
        work_within(call, context, Session::advance);
    }

    fn reopen(&self, call: &mut Call, context: &mut Context<'_>) {
        work_within(call, context, Session::reopen);
    }

    fn abort(&self, call: &mut Call, context: &mut Context<'_>, reason: &str) {
        lend(call, context, |session, now| session.handle(now, Input::Abort { reason: Some(reason.to_owned()) }));
    }
}

impl Call {
    /// Whether the session of the call, or one within it, waits for this input.
    pub(super) fn waits_within(&self, input: &Input) -> bool {
        self.session.as_ref().is_some_and(|nested| nested.work.awaits(&nested.session, input))
    }

    /// Gives the session of the call an input.
    pub(super) fn hand_down(&mut self, context: &mut Context<'_>, input: Input) -> Result<(), InputError> {
        self.work_within().ok_or(InputError::Unexpected)?.hand_down(self, context, input)
    }

    /// Lets the session of the call go on with what changed outside: a checkpoint that is safe, the time.
    pub(super) fn advance_within(&mut self, context: &mut Context<'_>) {
        if let Some(work) = self.work_within() {
            work.advance(self, context);
        }
    }

    /// Hands out again what was open in the session of the call when it was saved.
    pub(super) fn reopen_within(&mut self, context: &mut Context<'_>) {
        match self.work_within() {
            Some(work) => work.reopen(self, context),
            None => {
                let text = format!("{} was interrupted, and what it had done is lost.", self.call.tool_name);
                self.conclude(context, ToolOutput::error(text));
            }
        }
    }

    /// Aborts the session of the call, if there is one.
    pub(super) fn abort_within(&mut self, context: &mut Context<'_>, reason: &str) {
        if let Some(work) = self.work_within() {
            work.abort(self, context, reason);
        }
        self.session = None;
    }

    /// Whether the session of the call waits for approvals and client-side tools only.
    pub(super) fn is_suspended_within(&self) -> bool {
        self.session.as_ref().is_some_and(|nested| nested.session.status() == Status::Suspended)
    }

    /// Tokens that the session of the call has taken, or took.
    pub(super) fn spent_within(&self) -> Usage {
        self.session.as_ref().map_or(self.spent, |nested| nested.session.usage())
    }

    fn work_within(&self) -> Option<&'static dyn Work> {
        self.session.as_ref().map(|nested| nested.work)
    }
}

fn work_within<T>(
    call: &mut Call,
    context: &mut Context<'_>,
    work: impl FnOnce(&mut Session, Millis) -> T,
) -> Option<T> {
    let (outcome, end) = lend(call, context, work)?;
    if let Some(end) = end {
        call.session = None;
        call.conclude(context, output(&call.call.tool_name, &end));
    }
    Some(outcome)
}

/// Lends the session what is one in the whole tree of sessions, and takes up what it asks for and shows. Gives the end
/// of its run, when it came.
fn lend<T>(
    call: &mut Call,
    context: &mut Context<'_>,
    work: impl FnOnce(&mut Session, Millis) -> T,
) -> Option<(T, Option<RunEnd>)> {
    let (nested, tool) = (call.session.as_mut()?, call.tool.as_ref()?);
    let session = &mut *nested.session;
    let outer = &mut *context.conversation;
    // Numbers name what is asked of the host, so no two sessions of a tree may give the same.
    session.conversation.ids.next = outer.ids.next;
    session.conversation.checkpoints = outer.checkpoints;
    session.conversation.has_store = outer.has_store;
    session.conversation.allowance = context.left;
    let outcome = work(session, context.now);
    outer.ids.next = session.conversation.ids.next;
    outer.checkpoints = session.conversation.checkpoints;
    // What a checkpoint writes is said by the outermost session, when the host takes it.
    while let Some(effect) = session.conversation.effects.pop_front() {
        outer.effects.push_back(if effect.is_for_a_function() {
            Effect::OfSubAgent { tool: tool.clone(), effect: Box::new(effect) }
        } else {
            effect
        });
    }
    let mut end = None;
    while let Some(event) = session.poll_event() {
        if let EventKind::RunEnd(over) = &event.kind {
            call.spent = over.usage;
            end = Some(over.clone());
        }
        let call_id = call.call.call_id.clone();
        context.emit(EventKind::SubAgentEvent { call_id, event: Box::new(event) });
    }
    Some((outcome, end))
}

/// What the model reads of the agent's run.
fn output(name: &str, end: &RunEnd) -> ToolOutput {
    let output = match (end.reason, &end.error) {
        (EndReason::Limit, _) => {
            let text = if end.text.is_empty() { "It has no answer yet." } else { end.text.as_str() };
            ToolOutput::text(format!("{text}\n\n[{name} was stopped before it was done, because it reached a limit.]"))
        }
        (_, Some(error)) => ToolOutput::error(format!("{name} failed: {}", error.message())),
        (EndReason::Model(StopReason::Refusal | StopReason::ContentFilter), None) => {
            ToolOutput::error(format!("{name} gave no answer, because a filter stopped it. {}", end.text))
        }
        (_, None) if end.output.is_some() => ToolOutput {
            content: end.output.iter().map(|output| Content::Text(output.as_str().to_owned())).collect(),
            output: end.output.clone(),
            ..ToolOutput::default()
        },
        (_, None) if end.text.is_empty() => ToolOutput::text(format!("{name} ended without an answer.")),
        (_, None) => ToolOutput::text(end.text.clone()),
    };
    let details = Details { stop_reason: end.reason.as_str(), usage: end.usage };
    ToolOutput { details: RawJson::from_value(&details).ok(), ..output }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    stop_reason: &'static str,
    usage: Usage,
}

const INPUT_SCHEMA: &str = r#"{"type":"object","properties":{"prompt":{"type":"string","description":"The whole task: nothing else of this conversation is known."}},"required":["prompt"]}"#;
