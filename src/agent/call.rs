//! One tool call on its way through its three phases: prepare, execute, finalize.

use std::sync::Arc;

use super::context::Context;
use super::definition::ToolDefinition;
use super::effect::{Effect, HookId};
use super::event::EventKind;
use super::input::ToolOutput;
use super::prepare;
use super::result_cap;
use super::sub_agent::Nested;
use super::timers::Purpose;
use crate::json::RawJson;
use crate::model::{ToolCall, ToolInput, ToolResult, Usage};
use crate::planted::{self, Defect};

/// A complete call of the model and how far it has come.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) call: ToolCall,
    /// The tool, once it was found.
    pub(super) tool: Option<Arc<ToolDefinition>>,
    /// What the host's validator made of the input. Goes only to the tool and is not saved: it is asked again.
    pub(super) validated: Option<RawJson>,
    /// The session of the agent that works on it.
    pub(super) session: Option<Nested>,
    /// Tokens that such a session took.
    pub(super) spent: Usage,
    /// Whether the result of an earlier host's call is asked for. Not saved: each restore asks again.
    pub(super) is_claimed: bool,
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
    /// Execute: worked on by a sub-agent.
    Delegated { input: RawJson },
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
    /// The approval, where the tool needs one: the hook itself gave this input.
    Approval,
    /// The approval: the hook gave this input and asks for one.
    Ask,
    /// The tool: all was allowed before the session was restored.
    Run,
}

impl Call {
    pub(super) fn new(call: ToolCall) -> Self {
        Self {
            call,
            tool: None,
            validated: None,
            session: None,
            spent: Usage::default(),
            is_claimed: false,
            stage: Stage::Waiting,
        }
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

    /// Gives the call an error for its result, without running it.
    pub(super) fn refuse(&mut self, context: &mut Context<'_>, reason: impl Into<String>) {
        self.finish(context, ToolOutput::error(reason), false);
    }

    /// Stops whatever is going on and gives the call an error for its result.
    pub(super) fn interrupt(&mut self, context: &mut Context<'_>, reason: &str) {
        if matches!(self.stage, Stage::Done { .. }) {
            return;
        }
        self.abort_within(context, reason);
        if matches!(self.stage, Stage::Running { .. }) {
            context.perform(Effect::CancelTool { call_id: self.call.call_id.clone() });
        }
        let was_run = matches!(self.stage, Stage::Running { .. } | Stage::Delegated { .. } | Stage::AskingAfter { .. });
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
        if let Some(input) = input_to_run(&stage, &tool)
            && let Err(reason) = prepare::check(&mut context.conversation.tools, &tool, input)
        {
            // The tool takes something else by now.
            return self.refuse(context, reason);
        }
        let hooks = context.conversation.agent.hooks;
        match stage {
            Stage::Validating { input, then } => self.validate(context, &tool, input, then),
            // Another agent may have other guards: the call is prepared again under them.
            Stage::AskingBefore { .. } if !hooks.before_tool_call => self.stage = Stage::Waiting,
            Stage::AskingAfter { output, .. } if !hooks.after_tool_call => self.finish(context, output, true),
            Stage::AskingBefore { .. } | Stage::AskingAfter { .. } => self.ask_hook(context, &tool),
            Stage::AwaitingApproval { input } => self.ask_approval(context, &tool, input),
            Stage::Recording { input, .. } | Stage::Running { input } if tool.claimable => {
                self.claim(context, tool, input);
            }
            Stage::Delegated { .. } => {
                self.limit_time(context, &tool);
                self.reopen_within(context);
            }
            Stage::Recording { input, .. } | Stage::Running { input } => self.was_interrupted(context, &tool, input),
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
            Stage::Delegated { .. } => !self.is_suspended_within(),
            Stage::Validating { then, .. } => *then == AfterValidation::Run,
            _ => false,
        }
    }

    /// Whether only somebody outside the host can bring it forward.
    pub(super) fn waits_for_a_person(&self) -> bool {
        match &self.stage {
            Stage::AwaitingApproval { .. } => true,
            Stage::Running { .. } => self.is_client_side(),
            Stage::Delegated { .. } => self.is_suspended_within(),
            _ => false,
        }
    }

    /// Whether a hook is asked about it by this id.
    pub(super) fn is_asked(&self, id: HookId) -> bool {
        match &self.stage {
            Stage::AskingBefore { hook, .. } | Stage::AskingAfter { hook, .. } => *hook == id,
            _ => false,
        }
    }

    /// Whether as many calls of its tool are at work as may be.
    pub(super) fn has_no_place(&self, at_work: &[String]) -> bool {
        let limit = self.tool.as_ref().and_then(|tool| tool.max_concurrent);
        limit
            .and_then(|limit| usize::try_from(limit.max(1)).ok())
            .is_some_and(|limit| at_work.iter().filter(|name| **name == self.call.tool_name).count() >= limit)
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

    pub(super) fn finish(&mut self, context: &mut Context<'_>, output: ToolOutput, was_run: bool) {
        context.clear_timer(&Purpose::Tool(self.call.call_id.clone()));
        context.clear_timer(&Purpose::Hook(self.call.call_id.clone()));
        context.clear_timer(&Purpose::Approval(self.call.call_id.clone()));
        let output = match context.conversation.agent.policy.max_result_characters {
            Some(limit) => {
                let reads = context.conversation.tools.reads_results().is_some();
                result_cap::capped(output, limit, reads.then_some(&self.call.call_id))
            }
            None => output,
        };
        let terminate = output.terminate;
        let result = Arc::new(self.result(output));
        if !planted::is(Defect::DropsResults) {
            context.emit(EventKind::ToolResult(result.clone()));
        }
        self.stage = Stage::Done { result, terminate, was_run };
    }

    pub(super) fn result(&self, output: ToolOutput) -> ToolResult {
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

/// The input of a call that this process is going to run, and that none has run to its end.
fn input_to_run<'stage>(stage: &'stage Stage, tool: &ToolDefinition) -> Option<&'stage RawJson> {
    match stage {
        Stage::Validating { input, .. }
        | Stage::AskingBefore { input, .. }
        | Stage::AwaitingApproval { input }
        | Stage::Ready { input } => Some(input),
        Stage::Recording { input, .. } | Stage::Running { input } if tool.repeatable && !tool.claimable => Some(input),
        _ => None,
    }
}
