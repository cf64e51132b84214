//! The hooks before a model call: which model and tools the step has, and which messages it sends.

use super::conversation::Conversation;
use super::effect::{Effect, HookId, HookQuestion};
use super::event::EndReason;
use super::input::{HookReply, InputError};
use super::plan;
use super::run::{Phase, Run};
use super::timers::Purpose;
use crate::error::{Error, ErrorKind};
use crate::model::StopReason;
use crate::time::Millis;

/// A question about a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepQuestion {
    /// `prepareStep`
    Step,
    /// `prepareContext`
    Context,
    /// `stopWhen`, after the step
    Stop,
}

impl StepQuestion {
    /// The name of the hook.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Step => "prepareStep",
            Self::Context => "prepareContext",
            Self::Stop => "stopWhen",
        }
    }
}

impl Run {
    /// Asks the hooks that have not been asked about this step, then calls the model.
    pub(super) fn prepare_call(&mut self, conversation: &mut Conversation, now: Millis, attempt: u32) {
        match self.next_question(conversation) {
            Some(question) => {
                let hook = HookId(conversation.ids.number());
                self.ask(conversation, now, question, hook, attempt);
            }
            None => self.call_model(conversation, now, attempt),
        }
    }

    /// Asks, after a batch of tool calls, whether the run shall end there.
    pub(super) fn ask_whether_to_stop(&mut self, conversation: &mut Conversation, now: Millis) {
        let hook = HookId(conversation.ids.number());
        self.ask(conversation, now, StepQuestion::Stop, hook, 0);
    }

    /// Asks again, after a restore, what was being asked. What an earlier hook said is gone, so that one comes first.
    pub(super) fn ask_again(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        question: StepQuestion,
        hook: HookId,
        attempt: u32,
    ) {
        if question == StepQuestion::Stop {
            if conversation.agent.hooks.stop_when {
                self.ask(conversation, now, question, hook, attempt);
            } else {
                self.phase = Phase::BetweenSteps;
            }
        } else if self.next_question(conversation) == Some(question) {
            self.ask(conversation, now, question, hook, attempt);
        } else {
            self.prepare_call(conversation, now, attempt);
        }
    }

    /// A hook answered about the step.
    pub(super) fn step_hook_replied(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        id: HookId,
        reply: Result<HookReply, String>,
    ) -> Result<(), InputError> {
        let Phase::Preparing { hook, question, attempt } = self.phase else { return Err(InputError::Unexpected) };
        if hook != id {
            return Err(InputError::Unexpected);
        }
        self.context(conversation, now).clear_timer(&Purpose::StepHook);
        match (question, reply) {
            (StepQuestion::Step, Ok(HookReply::Continue)) => {
                self.active_tools = None;
                self.plan.change = Some(plan::StepChange::default());
            }
            (StepQuestion::Step, Ok(HookReply::ChangeStep(change))) => {
                self.active_tools.clone_from(&change.active_tools);
                if change.model.is_some() {
                    // Chosen for this step, so it is the first to be asked.
                    self.fallback = 0;
                }
                self.plan.change = Some(change);
            }
            (StepQuestion::Context, Ok(HookReply::Continue)) => {
                self.plan.messages = Some(conversation.context());
            }
            (StepQuestion::Stop, Ok(HookReply::Continue)) => {
                self.phase = Phase::BetweenSteps;
                return Ok(());
            }
            (StepQuestion::Stop, Ok(HookReply::Stop)) => {
                self.end_unless_asked_for_more(conversation, now, EndReason::Terminated);
                return Ok(());
            }
            (StepQuestion::Context, Ok(HookReply::EditContext(edits))) => match plan::edited(conversation, edits) {
                Ok(messages) => self.plan.messages = Some(messages),
                Err(unknown) => {
                    self.hook_failed(conversation, now, question, &format!("there is no message {unknown} to change"));
                    return Ok(());
                }
            },
            (_, Ok(_)) => {
                self.hook_failed(conversation, now, question, "its answer does not fit the question");
                return Ok(());
            }
            (_, Err(reason)) => {
                self.hook_failed(conversation, now, question, &reason);
                return Ok(());
            }
        }
        self.prepare_call(conversation, now, attempt);
        Ok(())
    }

    /// The hook that is being asked about the step takes too long.
    pub(super) fn step_hook_timed_out(&mut self, conversation: &mut Conversation, now: Millis) {
        let limit = conversation.agent.policy.hook_timeout.unwrap_or_default();
        match self.phase {
            Phase::Preparing { question, .. } => {
                self.hook_failed(conversation, now, question, &format!("it did not answer within {limit} ms"));
            }
            Phase::ValidatingOutput { .. } => {
                let message = format!("the validator of the output did not answer within {limit} ms");
                let error = Error::new(ErrorKind::Timeout, message);
                self.end(conversation, now, EndReason::Model(StopReason::Error), Some(error));
            }
            _ => {}
        }
    }

    fn next_question(&self, conversation: &Conversation) -> Option<StepQuestion> {
        let hooks = conversation.agent.hooks;
        if hooks.prepare_step && self.plan.change.is_none() {
            Some(StepQuestion::Step)
        } else if hooks.prepare_context && self.plan.messages.is_none() {
            Some(StepQuestion::Context)
        } else {
            None
        }
    }

    fn ask(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        question: StepQuestion,
        hook: HookId,
        attempt: u32,
    ) {
        self.phase = Phase::Preparing { hook, question, attempt };
        let step = self.steps.saturating_sub(1);
        let request = || self.request(conversation);
        let question = match question {
            StepQuestion::Step => HookQuestion::PrepareStep { step, request: request() },
            StepQuestion::Context => HookQuestion::PrepareContext { step, request: request() },
            StepQuestion::Stop => HookQuestion::StopWhen { step, messages: conversation.since_the_prompt() },
        };
        self.put_question(conversation, now, hook, question);
    }

    /// Asks the host, and sets how long it may take.
    pub(super) fn put_question(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        hook: HookId,
        question: HookQuestion,
    ) {
        let limit = conversation.agent.policy.hook_timeout;
        let mut context = self.context(conversation, now);
        let run_id = context.run_id.clone();
        context.perform(Effect::AskHook { hook, run_id, question });
        if let Some(limit) = limit {
            context.set_timer(Purpose::StepHook, limit);
        }
    }

    /// A step that was not prepared as the caller wants must not be sent.
    fn hook_failed(&mut self, conversation: &mut Conversation, now: Millis, question: StepQuestion, reason: &str) {
        let error = Error::new(ErrorKind::InvalidInput, format!("the hook {} failed: {reason}", question.name()));
        self.end(conversation, now, EndReason::Model(StopReason::Error), Some(error));
    }
}
