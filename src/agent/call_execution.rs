//! The second and third phase of a call: handed to the host, and its result finalized.

use std::sync::Arc;

use super::approval::InputHash;
use super::call::{AfterValidation, Call, Stage};
use super::context::Context;
use super::definition::ToolDefinition;
use super::effect::{Effect, HookId};
use super::event::EventKind;
use super::input::{InputError, ToolOutput};
use super::timers::Purpose;
use crate::json::RawJson;
use crate::planted::{self, Defect};

impl Call {
    /// Takes the place that has come free: records the start first where the tool must not run twice.
    pub(super) fn start(&mut self, context: &mut Context<'_>) {
        let (Stage::Ready { input }, Some(tool)) = (&self.stage, &self.tool) else { return };
        let (input, tool) = (input.clone(), tool.clone());
        if tool.has_validator && self.validated.is_none() {
            self.validate(context, &tool, input, AfterValidation::Run);
        } else if tool.agent.is_some() {
            // Nothing of it is done twice, since it is saved with the session.
            self.hand_out(context, tool, input);
        } else if tool.repeatable || tool.client_side {
            self.hand_out(context, tool, input);
        } else {
            // The stage comes first: the checkpoint must say that the call was started.
            self.stage = Stage::Recording { input, seq: 0 };
            let asked = context.conversation.checkpoint();
            if let Stage::Recording { seq, .. } = &mut self.stage {
                *seq = asked;
            }
            self.started_is_saved(context);
        }
    }

    /// Hands the call out once its start is safe.
    pub(super) fn started_is_saved(&mut self, context: &mut Context<'_>) {
        if let (Stage::Recording { input, seq }, Some(tool)) = (&self.stage, &self.tool)
            && context.conversation.is_saved(*seq)
        {
            let (input, tool) = (input.clone(), tool.clone());
            self.hand_out(context, tool, input);
        }
    }

    /// The tool is done.
    pub(super) fn ended(&mut self, context: &mut Context<'_>, output: ToolOutput) -> Result<(), InputError> {
        if !matches!(self.stage, Stage::Running { .. }) {
            return Err(InputError::Unexpected);
        }
        self.conclude(context, output);
        Ok(())
    }

    /// Nobody has the result of the call: it is over, or run again.
    pub(super) fn not_claimed(&mut self, context: &mut Context<'_>) -> Result<(), InputError> {
        match (&self.stage, &self.tool) {
            (Stage::Running { input }, Some(tool)) if self.is_claimed => {
                let (input, tool) = (input.clone(), tool.clone());
                self.is_claimed = false;
                self.was_interrupted(context, &tool, input);
                Ok(())
            }
            _ => Err(InputError::Unexpected),
        }
    }

    /// An earlier host started the call, and its result is lost.
    pub(super) fn was_interrupted(&mut self, context: &mut Context<'_>, tool: &ToolDefinition, input: RawJson) {
        if tool.repeatable || tool.client_side || planted::is(Defect::RunsToolsTwice) {
            self.stage = Stage::Ready { input };
            self.start(context);
        } else {
            let text = format!(
                "{} was interrupted: the process stopped while it ran, and whether it took effect is not known.",
                tool.name
            );
            self.finish(context, ToolOutput::error(text), true);
        }
    }

    /// Asks for the result of a call that an earlier host started.
    pub(super) fn claim(&mut self, context: &mut Context<'_>, tool: Arc<ToolDefinition>, input: RawJson) {
        let call_id = self.call.call_id.clone();
        self.limit_time(context, &tool);
        let claim_key = self.claim_key(context, &input);
        context.perform(Effect::ClaimTool { call_id, tool, input: input.clone(), claim_key });
        self.is_claimed = true;
        self.stage = Stage::Running { input };
    }

    /// Tells this call from every other, and from one that another answer of the model made in its place.
    fn claim_key(&self, context: &Context<'_>, input: &RawJson) -> Arc<str> {
        let message = context.conversation.history.last().map_or("", |message| message.id.as_str());
        format!("{message}/{}/{}", self.call.call_id, InputHash::of(input)).into()
    }

    /// Sets the limit of the tool's time. After a restore it is set already, unless it has passed.
    pub(super) fn limit_time(&self, context: &mut Context<'_>, tool: &ToolDefinition) {
        let purpose = Purpose::Tool(self.call.call_id.clone());
        if let Some(limit) = tool.timeout
            && context.timers.deadline(&purpose).is_none()
        {
            context.set_timer(purpose, limit);
        }
    }

    /// The work on the call is over, a tool's or a sub-agent's: goes on with its output.
    pub(super) fn conclude(&mut self, context: &mut Context<'_>, output: ToolOutput) {
        let (Stage::Running { input } | Stage::Delegated { input }, Some(tool)) = (&self.stage, &self.tool) else {
            return;
        };
        let (input, tool) = (input.clone(), tool.clone());
        context.clear_timer(&Purpose::Tool(self.call.call_id.clone()));
        if context.conversation.agent.hooks.after_tool_call {
            let hook = HookId(context.conversation.ids.number());
            self.stage = Stage::AskingAfter { hook, input, output };
            self.ask_hook(context, &tool);
        } else {
            self.finish(context, output, true);
        }
    }

    /// The tool took longer than it may.
    pub(super) fn timed_out(&mut self, context: &mut Context<'_>) {
        let limit = self.tool.as_ref().and_then(|tool| tool.timeout).unwrap_or_default();
        let text = format!("{} did not answer within {limit} ms and was stopped.", self.call.tool_name);
        self.abort_within(context, &text);
        if matches!(self.stage, Stage::Running { .. }) {
            context.perform(Effect::CancelTool { call_id: self.call.call_id.clone() });
        }
        self.conclude(context, ToolOutput::error(text));
    }

    fn hand_out(&mut self, context: &mut Context<'_>, tool: Arc<ToolDefinition>, input: RawJson) {
        let call_id = self.call.call_id.clone();
        context.emit(EventKind::ToolStart {
            call_id: call_id.clone(),
            input: input.clone(),
            client_side: tool.client_side,
        });
        self.limit_time(context, &tool);
        if let Some(agent) = &tool.agent {
            agent.begin(self, context, input);
            return;
        }
        let given = self.validated.clone().unwrap_or_else(|| input.clone());
        let claim_key = tool.claimable.then(|| self.claim_key(context, &input));
        context.perform(Effect::CallTool { call_id, tool, input: given, claim_key });
        self.stage = Stage::Running { input };
    }
}
