//! One tool call on its way through its three phases: prepare, execute, finalize.

use std::sync::Arc;

use super::context::Context;
use super::definition::ToolDefinition;
use super::effect::{Effect, HookId, HookQuestion};
use super::event::EventKind;
use super::input::{Approval, HookReply, InputError, ToolOutput};
use super::prepare;
use super::timers::Purpose;
use crate::json::RawJson;
use crate::model::{ToolCall, ToolInput, ToolResult};

/// A complete call of the model and how far it has come.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) call: ToolCall,
    /// The tool, once it was found.
    pub(super) tool: Option<Arc<ToolDefinition>>,
    /// What the host's validator made of the input. Goes only to the tool and is not saved: it is asked again.
    pub(super) validated: Option<RawJson>,
    pub(super) stage: Stage,
}

/// How far a call has come. `input` is what fits the JSON Schema: the model's, or what a hook put in its place.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// Prepare: it is not yet its turn.
    Waiting,
    /// Prepare: the host's validator is asked.
    Validating { input: RawJson, then: AfterValidation },
    /// Prepare: the `beforeToolCall` hook is asked.
    AskingBefore { input: RawJson, hook: HookId },
    /// A person is asked.
    AwaitingApproval { input: RawJson },
    /// Execute: allowed, and waits for a place.
    Ready { input: RawJson },
    /// Execute: waits until the checkpoint that says "started" is safe.
    Recording { input: RawJson, seq: u64 },
    /// Execute: handed to the host.
    Running { input: RawJson },
    /// Finalize: the `afterToolCall` hook is asked.
    AskingAfter { hook: HookId, input: RawJson, output: ToolOutput },
    /// It has its one result.
    Done { result: Arc<ToolResult>, terminate: bool, was_run: bool },
}

/// What a valid input leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterValidation {
    /// The hook and the approval.
    Hook,
    /// The approval: the hook itself gave this input.
    Approval,
    /// The tool: all was allowed before the session was restored.
    Run,
}

impl Call {
    pub(super) fn new(call: ToolCall) -> Self {
        Self { call, tool: None, validated: None, stage: Stage::Waiting }
    }

    /// Shows the call as complete.
    pub(super) fn announce(&self, context: &mut Context<'_>) {
        let tool = context.conversation.tools.find(&self.call.tool_name);
        let server = tool.and_then(|tool| tool.server.clone());
        let input = match &self.call.input {
            ToolInput::Json(input) => Some(input.clone()),
            ToolInput::Malformed { text, .. } => RawJson::from_value(text).ok(),
        };
        if let Some(input) = input {
            context.emit(EventKind::ToolCall {
                call_id: self.call.call_id.clone(),
                tool_name: self.call.tool_name.clone(),
                input,
                server,
            });
        }
    }

    /// Begins the preparation.
    pub(super) fn prepare(&mut self, context: &mut Context<'_>) {
        if let Some(listed) = context.conversation.tools.discover(&self.call) {
            match listed {
                Ok(output) => self.finish(context, output, true),
                Err(reason) => self.refuse(context, reason),
            }
            return;
        }
        match prepare::prepare(&mut context.conversation.tools, context.active_tools, &self.call) {
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

    /// A person decided.
    pub(super) fn decided(&mut self, context: &mut Context<'_>, decision: Approval) -> Result<(), InputError> {
        let Stage::AwaitingApproval { input } = &self.stage else { return Err(InputError::Unexpected) };
        let input = input.clone();
        let allowed = decision == Approval::Allow;
        context.emit(EventKind::ApprovalResponse { call_id: self.call.call_id.clone(), allowed });
        match decision {
            Approval::Allow => self.stage = Stage::Ready { input },
            Approval::Deny { reason } => {
                let why = reason.map(|reason| format!(" Reason: {reason}")).unwrap_or_default();
                let text = format!("The user did not allow this call of {}; it was not run.{why}", self.call.tool_name);
                self.refuse(context, text);
            }
        }
        Ok(())
    }

    /// Takes the place that has come free: records the start first where the tool must not run twice.
    pub(super) fn start(&mut self, context: &mut Context<'_>) {
        let (Stage::Ready { input }, Some(tool)) = (&self.stage, &self.tool) else { return };
        let (input, tool) = (input.clone(), tool.clone());
        if tool.has_validator && self.validated.is_none() {
            self.validate(context, &tool, input, AfterValidation::Run);
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
        let (Stage::Running { input }, Some(tool)) = (&self.stage, &self.tool) else {
            return Err(InputError::Unexpected);
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
        Ok(())
    }

    /// The tool took longer than it may.
    pub(super) fn timed_out(&mut self, context: &mut Context<'_>) {
        let limit = self.tool.as_ref().and_then(|tool| tool.timeout).unwrap_or_default();
        if matches!(self.stage, Stage::Running { .. }) {
            context.perform(Effect::CancelTool { call_id: self.call.call_id.clone() });
            let text = format!("{} did not answer within {limit} ms and was stopped.", self.call.tool_name);
            // `Running` was just matched, so that the answer is not unexpected.
            let _ = self.ended(context, ToolOutput::error(text));
        }
    }

    /// Gives the call an error for its result, without running it.
    pub(super) fn refuse(&mut self, context: &mut Context<'_>, reason: impl Into<String>) {
        self.finish(context, ToolOutput::error(reason), false);
    }

    /// Stops whatever is going on and gives the call an error for its result.
    pub(super) fn interrupt(&mut self, context: &mut Context<'_>, reason: &str) {
        if matches!(self.stage, Stage::Done { .. }) {
            return;
        }
        if matches!(self.stage, Stage::Running { .. }) {
            context.perform(Effect::CancelTool { call_id: self.call.call_id.clone() });
        }
        let was_run = matches!(self.stage, Stage::Running { .. } | Stage::AskingAfter { .. });
        self.finish(context, ToolOutput::error(reason), was_run);
    }

    /// Goes on with what was open when the session was saved, with the tools of the agent as it is now.
    pub(super) fn reopen(&mut self, context: &mut Context<'_>) {
        self.tool = context.conversation.tools.find(&self.call.tool_name).cloned();
        let stage = self.stage.clone();
        let Some(tool) = self.tool.clone() else {
            match stage {
                // The preparation says so itself.
                Stage::Waiting | Stage::Done { .. } => {}
                Stage::AskingAfter { output, .. } => self.finish(context, output, true),
                _ => self.refuse(context, format!("The tool {} is no longer there.", self.call.tool_name)),
            }
            return;
        };
        let hooks = context.conversation.agent.hooks;
        match stage {
            Stage::Validating { input, then } => self.validate(context, &tool, input, then),
            // Another agent may have other guards: the call is prepared again under them.
            Stage::AskingBefore { .. } if !hooks.before_tool_call => self.stage = Stage::Waiting,
            Stage::AskingAfter { output, .. } if !hooks.after_tool_call => self.finish(context, output, true),
            Stage::AskingBefore { .. } | Stage::AskingAfter { .. } => self.ask_hook(context, &tool),
            Stage::AwaitingApproval { input } => self.ask_approval(context, &tool, input),
            Stage::Recording { input, .. } | Stage::Running { input } if tool.repeatable || tool.client_side => {
                self.stage = Stage::Ready { input };
                self.start(context);
            }
            Stage::Recording { .. } | Stage::Running { .. } => {
                let text = format!(
                    "{} was interrupted: the process stopped while it ran, and whether it took effect is not known.",
                    tool.name
                );
                self.finish(context, ToolOutput::error(text), true);
            }
            Stage::Waiting | Stage::Ready { .. } | Stage::Done { .. } => {}
        }
    }

    /// Whether the preparation of the next call may begin.
    pub(super) fn is_prepared(&self) -> bool {
        match &self.stage {
            Stage::Waiting | Stage::AskingBefore { .. } => false,
            Stage::Validating { then, .. } => *then == AfterValidation::Run,
            _ => true,
        }
    }

    /// Whether it takes one of the places of tools at work.
    pub(super) fn is_at_work(&self) -> bool {
        match &self.stage {
            Stage::Recording { .. } => true,
            Stage::Running { .. } => !self.is_client_side(),
            Stage::Validating { then, .. } => *then == AfterValidation::Run,
            _ => false,
        }
    }

    /// Whether only somebody outside the host can bring it forward.
    pub(super) fn waits_for_a_person(&self) -> bool {
        match &self.stage {
            Stage::AwaitingApproval { .. } => true,
            Stage::Running { .. } => self.is_client_side(),
            _ => false,
        }
    }

    pub(super) fn is_sequential(&self) -> bool {
        self.tool.as_ref().is_some_and(|tool| tool.sequential)
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done { .. })
    }

    fn is_client_side(&self) -> bool {
        self.tool.as_ref().is_some_and(|tool| tool.client_side)
    }

    fn validate(
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
            Ok(HookReply::ChangeInput(changed)) => {
                match prepare::check(&mut context.conversation.tools, tool, &changed) {
                    Ok(input) => self.validate(context, tool, input, AfterValidation::Approval),
                    Err(reason) => self.refuse(context, reason),
                }
            }
            Ok(HookReply::Deny(reason)) => self.refuse(context, reason),
            Ok(HookReply::Ask) => self.ask_approval(context, tool, input),
            Ok(HookReply::ChangeResult(_) | HookReply::ChangeStep(_) | HookReply::ChangeContext(_)) => {
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

    fn ask_hook(&self, context: &mut Context<'_>, tool: &Arc<ToolDefinition>) {
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
        context.perform(Effect::AskHook { hook, question });
        self.limit_the_asking(context);
    }

    /// Sets the time by which the validator or hook must have answered. After a restore it is set already.
    fn limit_the_asking(&self, context: &mut Context<'_>) {
        let purpose = Purpose::Hook(self.call.call_id.clone());
        if let Some(limit) = context.conversation.agent.policy.hook_timeout
            && context.timers.deadline(&purpose).is_none()
        {
            context.set_timer(purpose, limit);
        }
    }

    fn ask_approval(&mut self, context: &mut Context<'_>, tool: &Arc<ToolDefinition>, input: RawJson) {
        let call_id = self.call.call_id.clone();
        context.emit(EventKind::ApprovalRequest {
            call_id: call_id.clone(),
            tool_name: tool.name.clone(),
            input: input.clone(),
        });
        context.perform(Effect::AskApproval { call_id, tool: tool.clone(), input: input.clone() });
        self.stage = Stage::AwaitingApproval { input };
    }

    fn hand_out(&mut self, context: &mut Context<'_>, tool: Arc<ToolDefinition>, input: RawJson) {
        let call_id = self.call.call_id.clone();
        context.emit(EventKind::ToolStart { call_id: call_id.clone(), input: input.clone() });
        let purpose = Purpose::Tool(call_id.clone());
        if let Some(limit) = tool.timeout
            && context.timers.deadline(&purpose).is_none()
        {
            context.set_timer(purpose, limit);
        }
        let given = self.validated.clone().unwrap_or_else(|| input.clone());
        context.perform(Effect::CallTool { call_id, tool, input: given });
        self.stage = Stage::Running { input };
    }

    fn finish(&mut self, context: &mut Context<'_>, output: ToolOutput, was_run: bool) {
        context.clear_timer(&Purpose::Tool(self.call.call_id.clone()));
        context.clear_timer(&Purpose::Hook(self.call.call_id.clone()));
        let terminate = output.terminate;
        let result = Arc::new(self.result(output));
        context.emit(EventKind::ToolResult(result.clone()));
        self.stage = Stage::Done { result, terminate, was_run };
    }

    fn result(&self, output: ToolOutput) -> ToolResult {
        ToolResult {
            call_id: self.call.call_id.clone(),
            tool_name: self.call.tool_name.clone(),
            content: output.content,
            output: output.output,
            details: output.details,
            is_error: output.is_error,
        }
    }
}
