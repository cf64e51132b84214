//! Sub-agents: a tool that is an agent itself. Its call is worked on by a session of its own, nested inside the call, so
//! that it is saved, restored, aborted and asked for approvals with the run that made the call.

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
pub struct SubAgent(pub Arc<Agent>);

impl PartialEq for SubAgent {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl ToolDefinition {
    /// A tool whose calls an agent works on. It takes `{"prompt": "…"}`; the answer of the agent is the result.
    ///
    /// With another `input_schema` the agent is given the input as JSON text, unless it has a `prompt` that is text.
    pub fn sub_agent(name: impl Into<String>, description: impl Into<String>, agent: Arc<Agent>) -> Self {
        let schema = RawJson::parse(INPUT_SCHEMA).unwrap_or_else(|_| RawValue::TRUE.into());
        Self { agent: Some(SubAgent(agent)), ..Self::new(name, description, schema) }
    }
}

impl Call {
    /// Begins a session for the call.
    pub(super) fn delegate(&mut self, context: &mut Context<'_>, agent: Arc<Agent>, input: RawJson) {
        let given = self.validated.as_ref().unwrap_or(&input);
        let prompt = Object::parse(given.as_str()).ok().and_then(|input| input.string("prompt"));
        let prompt = vec![Content::Text(prompt.unwrap_or_else(|| given.as_str().to_owned()))];
        let seed = context.conversation.ids.fresh_seed();
        self.session = Some(Box::new(Session::nested(agent, seed)));
        self.stage = Stage::Delegated { input };
        self.hand_down(context, Input::Prompt(prompt)).unwrap_or_else(|refused| {
            self.session = None;
            self.conclude(context, ToolOutput::error(refused.to_string()));
        });
    }

    /// Whether the session of the call, or one within it, waits for this input.
    pub(super) fn waits_within(&self, input: &Input) -> bool {
        self.session.as_ref().is_some_and(|session| session.awaits(input))
    }

    /// Gives the session of the call an input.
    pub(super) fn hand_down(&mut self, context: &mut Context<'_>, input: Input) -> Result<(), InputError> {
        let lent = self.session.as_ref().map(|session| session.lent());
        let outcome = self.work_within(context, |session, now| session.handle(now, input));
        let outcome = outcome.unwrap_or(Err(InputError::Unexpected));
        if let (Err(_), Some(session), Some(lent)) = (&outcome, &mut self.session, lent) {
            // What was refused has changed nothing, not even what was lent for it.
            session.take_back(lent);
        }
        outcome
    }

    /// Lets the session of the call go on with what changed outside: a checkpoint that is safe, the time.
    pub(super) fn advance_within(&mut self, context: &mut Context<'_>) {
        self.work_within(context, Session::advance);
    }

    /// Hands out again what was open in the session of the call when it was saved.
    pub(super) fn reopen_within(&mut self, context: &mut Context<'_>) {
        if self.work_within(context, Session::reopen).is_none() {
            let text = format!("{} was interrupted, and what it had done is lost.", self.call.tool_name);
            self.conclude(context, ToolOutput::error(text));
        }
    }

    /// Aborts the session of the call, if there is one.
    pub(super) fn abort_within(&mut self, context: &mut Context<'_>, reason: &str) {
        self.lend(context, |session, now| session.handle(now, Input::Abort { reason: Some(reason.to_owned()) }));
        self.session = None;
    }

    /// Whether the session of the call waits for approvals and client-side tools only.
    pub(super) fn is_suspended_within(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.status() == Status::Suspended)
    }

    /// Tokens that the session of the call has taken, or took.
    pub(super) fn spent_within(&self) -> Usage {
        self.session.as_ref().map_or(self.spent, |session| session.usage())
    }

    fn work_within<T>(&mut self, context: &mut Context<'_>, work: impl FnOnce(&mut Session, Millis) -> T) -> Option<T> {
        let (outcome, end) = self.lend(context, work)?;
        if let Some(end) = end {
            self.session = None;
            self.conclude(context, output(&self.call.tool_name, &end));
        }
        Some(outcome)
    }

    /// Lends the session what is one in the whole tree of sessions, and takes up what it asks for and shows. Gives the end
    /// of its run, when it came.
    fn lend<T>(
        &mut self,
        context: &mut Context<'_>,
        work: impl FnOnce(&mut Session, Millis) -> T,
    ) -> Option<(T, Option<RunEnd>)> {
        let (session, tool) = (self.session.as_deref_mut()?, self.tool.as_ref()?);
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
                self.spent = over.usage;
                end = Some(over.clone());
            }
            let call_id = self.call.call_id.clone();
            context.emit(EventKind::SubAgentEvent { call_id, event: Box::new(event) });
        }
        Some((outcome, end))
    }
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
