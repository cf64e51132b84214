//! The first phase of a call, and the questions around it: validator, hooks, approval.

use std::sync::Arc;

use super::call::{AfterValidation, Call, Stage};
use super::context::Context;
use super::definition::ToolDefinition;
use super::effect::{Effect, HookId, HookQuestion};
use super::event::EventKind;
use super::input::{HookReply, InputError, ToolOutput};
use super::prepare;
use super::result_reader;
use super::timers::Purpose;
use crate::json::RawJson;

impl Call {
    /// Begins the preparation.
    pub(super) fn prepare(&mut self, context: &mut Context<'_>) {
        if let Some(listed) = context.conversation.tools.discover(&self.call) {
            match listed {
                Ok(output) => self.finish(context, output, true),
                Err(reason) => self.refuse(context, reason),
            }
            return;
        }
        if self.call.tool_name == result_reader::TOOL
            && let Some(page) = context.conversation.tools.reads_results()
        {
            match result_reader::answer(&context.conversation.history, page, &self.call) {
                Ok(output) => self.finish(context, output, true),
                Err(reason) => self.refuse(context, reason),
            }
            return;
        }
        let prepared = prepare::prepare(&mut context.conversation.tools, context.active_tools, &self.call);
        for (tool_name, keywords) in context.conversation.tools.take_unchecked() {
            context.emit(EventKind::SchemaUnchecked { tool_name: Some(tool_name), keywords });
        }
        match prepared {
            Ok((tool, input)) => {
                self.tool = Some(tool.clone());
                self.validate(context, &tool, input, AfterValidation::Hook);
            }
            Err(reason) => self.refuse(context, reason),
        }
    }

    /// The host's validator answered.
    pub(super) fn validated(
        &mut self,
        context: &mut Context<'_>,
        outcome: Result<Option<RawJson>, String>,
    ) -> Result<(), InputError> {
        let (Stage::Validating { input, then }, Some(tool)) = (&self.stage, &self.tool) else {
            return Err(InputError::Unexpected);
        };
        let (input, then, tool) = (input.clone(), *then, tool.clone());
        context.clear_timer(&Purpose::Hook(self.call.call_id.clone()));
        match outcome {
            Ok(changed) => {
                self.validated = Some(changed.unwrap_or_else(|| input.clone()));
                self.after_validation(context, &tool, input, then);
            }
            Err(reason) => {
                self.refuse(context, prepare::unfit(&tool, &reason));
            }
        }
        Ok(())
    }

    /// A hook answered.
    pub(super) fn hook_replied(&mut self, context: &mut Context<'_>, reply: Result<HookReply, String>) {
        context.clear_timer(&Purpose::Hook(self.call.call_id.clone()));
        let Some(tool) = self.tool.clone() else { return };
        match self.stage.clone() {
            Stage::AskingBefore { input, .. } => self.before_replied(context, &tool, input, reply),
            Stage::AskingAfter { output, .. } => {
                let output = match reply {
                    Ok(HookReply::ChangeResult(changed)) => changed,
                    Ok(HookReply::Continue) => output,
                    Ok(_) => ToolOutput::error(format!(
                        "The hook after {} gave an answer that does not fit the question.",
                        tool.name
                    )),
                    Err(reason) => ToolOutput::error(format!("The hook after {} failed: {reason}", tool.name)),
                };
                self.finish(context, output, true);
            }
            _ => {}
        }
    }

    /// The validator or hook that is asked about the call took longer than it may.
    pub(super) fn asking_timed_out(&mut self, context: &mut Context<'_>, limit: u64) {
        let reason = format!("it did not answer within {limit} ms");
        if matches!(self.stage, Stage::Validating { .. }) {
            self.refuse(
                context,
                format!("The validator of {} failed and it was not run: {reason}", self.call.tool_name),
            );
        } else {
            self.hook_replied(context, Err(reason));
        }
    }

    pub(super) fn validate(
        &mut self,
        context: &mut Context<'_>,
        tool: &Arc<ToolDefinition>,
        input: RawJson,
        then: AfterValidation,
    ) {
        if tool.has_validator {
            let effect =
                Effect::ValidateInput { call_id: self.call.call_id.clone(), tool: tool.clone(), input: input.clone() };
            context.perform(effect);
            self.limit_the_asking(context);
            self.stage = Stage::Validating { input, then };
        } else {
            self.after_validation(context, tool, input, then);
        }
    }

    fn after_validation(
        &mut self,
        context: &mut Context<'_>,
        tool: &Arc<ToolDefinition>,
        input: RawJson,
        then: AfterValidation,
    ) {
        match then {
            AfterValidation::Hook if context.conversation.agent.hooks.before_tool_call => {
                let hook = HookId(context.conversation.ids.number());
                self.stage = Stage::AskingBefore { input, hook };
                self.ask_hook(context, tool);
            }
            AfterValidation::Ask => self.ask_approval(context, tool, input),
            AfterValidation::Hook | AfterValidation::Approval if tool.needs_approval => {
                self.ask_approval(context, tool, input);
            }
            AfterValidation::Hook | AfterValidation::Approval => self.stage = Stage::Ready { input },
            AfterValidation::Run => {
                self.stage = Stage::Ready { input };
                self.start(context);
            }
        }
    }

    fn before_replied(
        &mut self,
        context: &mut Context<'_>,
        tool: &Arc<ToolDefinition>,
        input: RawJson,
        reply: Result<HookReply, String>,
    ) {
        match reply {
            Ok(HookReply::Continue) => self.after_validation(context, tool, input, AfterValidation::Approval),
            Ok(HookReply::ChangeInput(changed)) => self.changed(context, tool, &changed, AfterValidation::Approval),
            Ok(HookReply::ChangeAndAsk(changed)) => self.changed(context, tool, &changed, AfterValidation::Ask),
            Ok(HookReply::Deny(reason)) => self.refuse(context, reason),
            Ok(HookReply::Ask) => self.ask_approval(context, tool, input),
            Ok(
                HookReply::ChangeResult(_)
                | HookReply::ChangeStep(_)
                | HookReply::EditContext(_)
                | HookReply::ChangeBody(_)
                | HookReply::Stop,
            ) => {
                self.refuse(
                    context,
                    format!("The hook before {} gave an answer that does not fit the question.", tool.name),
                );
            }
            // A guard that fails must not let anything through.
            Err(reason) => {
                self.refuse(context, format!("The hook before {} failed and it was not run: {reason}", tool.name))
            }
        }
    }

    /// The hook gave this input in the place of the model's.
    fn changed(
        &mut self,
        context: &mut Context<'_>,
        tool: &Arc<ToolDefinition>,
        input: &RawJson,
        then: AfterValidation,
    ) {
        match prepare::check(&mut context.conversation.tools, tool, input) {
            Ok(input) => self.validate(context, tool, input, then),
            Err(reason) => self.refuse(context, reason),
        }
    }

    pub(super) fn ask_hook(&self, context: &mut Context<'_>, tool: &Arc<ToolDefinition>) {
        let (hook, question) = match &self.stage {
            Stage::AskingBefore { input, hook } => (
                *hook,
                HookQuestion::BeforeToolCall {
                    call_id: self.call.call_id.clone(),
                    tool: tool.clone(),
                    input: input.clone(),
                },
            ),
            Stage::AskingAfter { hook, input, output } => (
                *hook,
                HookQuestion::AfterToolCall {
                    tool: tool.clone(),
                    input: input.clone(),
                    result: self.result(output.clone()),
                },
            ),
            _ => return,
        };
        let run_id = context.run_id.clone();
        context.perform(Effect::AskHook { hook, run_id, question });
        self.limit_the_asking(context);
    }

    /// Sets the time by which the validator or hook must have answered.
    fn limit_the_asking(&self, context: &mut Context<'_>) {
        if let Some(limit) = context.conversation.agent.policy.hook_timeout {
            context.set_timer(Purpose::Hook(self.call.call_id.clone()), limit);
        }
    }
}
