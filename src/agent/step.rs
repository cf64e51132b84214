//! A step of a run: the model call with its attempts and timeouts, and what its answer leads to.

use std::sync::Arc;

use super::answer::Answer;
use super::context::Context;
use super::conversation::Conversation;
use super::definition::Terminate;
use super::effect::{Effect, ModelCallId};
use super::event::{EndReason, EventKind};
use super::input::InputError;
use super::plan::StepPlan;
use super::retry;
use super::run::{ModelCall, Phase, Run, Suspension};
use super::summarizing::NextAttempt;
use super::timers::Purpose;
use super::tools::Batch;
use crate::error::{Error, ErrorKind};
use crate::model::{
    AssistantMessage, Body, Message, ModelEvent, ModelRef, Origin, Part, StopReason, ToolCall, ToolMessage, ToolResult,
    Usage,
};
use crate::planted::{self, Defect};
use crate::time::Millis;

impl Run {
    /// Delivers what was steered, and begins the next step unless a limit says no.
    pub(super) fn begin_step(&mut self, conversation: &mut Conversation, now: Millis) {
        self.deliver_steers(conversation, now);
        if let Some(limit) = self.limit_reached(conversation) {
            self.context(conversation, now).emit(EventKind::LimitReached { limit });
            self.end(conversation, now, EndReason::Limit, None);
            return;
        }
        if self.steps > 0 && self.step_usage.cost.is_none() && self.left(conversation).cost.is_some() {
            self.cost_is_unknown(conversation, now, "the model did not say what its last answer used or cost");
            return;
        }
        if let Some(tools) = conversation.next_tools.take() {
            conversation.tools.replace(tools);
        }
        self.steps += 1;
        self.step_usage = Usage::default();
        self.active_tools = None;
        self.plan = StepPlan::default();
        self.attempts_before = 0;
        self.shortened = false;
        self.context(conversation, now).emit(EventKind::StepStart);
        self.compact_beyond_threshold(conversation, now);
        // What the model is about to read is saved before it reads it: the prompt, and the results of tools.
        self.phase = Phase::Saving { seq: conversation.checkpoint() };
    }

    /// Ends the run: its limit cannot be kept.
    fn cost_is_unknown(&mut self, conversation: &mut Conversation, now: Millis, why: &str) {
        let error = Error::new(ErrorKind::InvalidInput, format!("the run has a limit of cost, but {why}"));
        self.end(conversation, now, EndReason::Model(StopReason::Error), Some(error));
    }

    /// Makes an attempt of the step's model call.
    pub(super) fn call_model(&mut self, conversation: &mut Conversation, now: Millis, attempt: u32) {
        let request = self.request(conversation);
        if !request.model.has_cost() && self.left(conversation).cost.is_some() {
            let id = &request.model.id;
            self.cost_is_unknown(
                conversation,
                now,
                &format!("the prices of the model \"{id}\" are not known; give the model prices"),
            );
            return;
        }
        let id = ModelCallId(conversation.ids.number());
        let model = request.model.reference();
        let answer = Answer::of(request.model.clone());
        let first_byte_timeout = conversation.agent.policy.first_byte_timeout;
        let mut context = self.context(conversation, now);
        context.perform(Effect::CallModel { call: id, request });
        context.set_timer(Purpose::ModelSilence, first_byte_timeout);
        let call = ModelCall { id, attempt, model, answer, last_data: None, data_since_timer: false };
        self.phase = Phase::Calling(Box::new(call));
    }

    /// Takes a chunk of the answer.
    pub(super) fn model_events(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        id: ModelCallId,
        events: Vec<ModelEvent>,
    ) -> Result<(), InputError> {
        let step = self.steps.saturating_sub(1);
        let left = self.left(conversation);
        let Phase::Calling(call) = &mut self.phase else { return Err(InputError::Unexpected) };
        if call.id != id {
            return Err(InputError::Unexpected);
        }
        let active_tools = self.active_tools.as_deref();
        let timers = &mut self.timers;
        let mut context = Context { now, run_id: &self.id, step, active_tools, left, timers, conversation };
        let idle_timeout = context.conversation.agent.policy.idle_timeout;
        if context
            .timers
            .deadline(&Purpose::ModelSilence)
            .is_some_and(|at| call.last_data.is_none() && now.after(idle_timeout) < at)
        {
            context.set_timer(Purpose::ModelSilence, idle_timeout);
        } else {
            // The timer stays as it is and asks for the last data when it is due: one timer a chunk would cost more.
            call.data_since_timer = true;
        }
        call.last_data = Some(now);
        for event in events {
            call.answer.take(event, &mut self.blocks, &mut context);
        }
        Ok(())
    }

    /// The answer is over.
    pub(super) fn model_ended(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        id: ModelCallId,
        outcome: Result<(), Error>,
    ) -> Result<(), InputError> {
        let call = match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Calling(call) if call.id == id => call,
            phase => {
                self.phase = phase;
                return Err(InputError::Unexpected);
            }
        };
        self.answer_is_over(conversation, now, call, outcome);
        Ok(())
    }

    /// The silence timer is due: unless data came meanwhile, the attempt is given up.
    pub(super) fn model_is_silent(&mut self, conversation: &mut Conversation, now: Millis) {
        let policy = &conversation.agent.policy;
        let (idle_timeout, first_byte_timeout) = (policy.idle_timeout, policy.first_byte_timeout);
        let mut call = match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Calling(call) => call,
            phase => {
                self.phase = phase;
                return;
            }
        };
        if let Some(last_data) = call.last_data
            && call.data_since_timer
            && now.since(last_data) < idle_timeout
        {
            let remaining = idle_timeout - now.since(last_data);
            call.data_since_timer = false;
            self.phase = Phase::Calling(call);
            self.context(conversation, now).set_timer(Purpose::ModelSilence, remaining);
            return;
        }
        self.context(conversation, now).perform(Effect::CancelModel { call: call.id });
        let message = match call.last_data {
            Some(_) => {
                format!("the model sent nothing more for {idle_timeout} ms; try again, or raise the idle timeout")
            }
            None => format!(
                "the model did not begin to answer within {first_byte_timeout} ms; try again, or raise the first-byte timeout"
            ),
        };
        self.answer_is_over(conversation, now, call, Err(Error::new(ErrorKind::Timeout, message)));
    }

    /// All calls of the answer have their results. `end` says why the run shall end, unless there is more to work on.
    pub(super) fn finish_batch(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        results: Vec<ToolResult>,
        end: Option<EndReason>,
    ) {
        let message = conversation.history.last().cloned();
        conversation.push(Body::Tool(ToolMessage { results }));
        if let Some(message) = message {
            self.finish_step(conversation, now, message, end);
        }
        if matches!(self.phase, Phase::BetweenSteps) {
            self.break_circle(conversation, now);
        }
        if matches!(self.phase, Phase::BetweenSteps) && conversation.agent.hooks.stop_when {
            self.ask_whether_to_stop(conversation, now);
        }
    }

    /// Decides what the end of an attempt leads to.
    fn answer_is_over(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        mut call: Box<ModelCall>,
        ended: Result<(), Error>,
    ) {
        self.step_usage = self.step_usage.plus(call.answer.usage());
        self.usage = self.usage.plus(call.answer.usage());
        self.context(conversation, now).clear_timer(&Purpose::ModelSilence);
        match call.answer.outcome(ended) {
            Err(error) if planted::is(Defect::RunsTruncatedCalls) && error.kind() == ErrorKind::StreamTruncated => {
                self.take_answer(conversation, now, *call, StopReason::ToolUse);
            }
            Ok(reason) => self.take_answer(conversation, now, *call, reason),
            Err(error) => self.attempt_failed(conversation, now, *call, error),
        }
    }

    fn attempt_failed(&mut self, conversation: &mut Conversation, now: Millis, call: ModelCall, error: Error) {
        let error = if error.kind() == ErrorKind::ContextOverflow {
            let next = NextAttempt { number: call.attempt.saturating_add(1), error: Some(error.clone()) };
            if self.shorten(conversation, now, next).is_ok() {
                return;
            }
            error
        } else {
            error
        };
        let jitter = conversation.ids.jitter(call.id.0);
        let own_attempt = call.attempt.saturating_sub(self.attempts_before);
        if let Some(delay) = retry::delay(&conversation.agent.policy, &error, own_attempt, jitter) {
            let attempt = call.attempt.saturating_add(1);
            let mut context = self.context(conversation, now);
            if !planted::is(Defect::ShowsTextTwice) {
                context.emit(EventKind::StepRetry { attempt, delay, error, model: None });
            }
            context.set_timer(Purpose::Retry, delay);
            self.phase = Phase::Waiting { attempt };
            // Not waited for: who goes on after a crash keeps to what the provider asked for.
            conversation.checkpoint();
        } else if let Some(model) = self.fall_back(conversation, &error, call.attempt) {
            let attempt = call.attempt.saturating_add(1);
            let model = Some(model.reference());
            self.context(conversation, now).emit(EventKind::StepRetry { attempt, delay: 0, error, model });
            self.prepare_call(conversation, now, attempt);
        } else {
            let message = self.store_cut_answer(
                conversation,
                now,
                call,
                StopReason::Error,
                "Not run, because the model's answer failed.",
            );
            self.end_cut(conversation, now, EndReason::Model(StopReason::Error), Some(error), message);
        }
    }

    /// Keeps what is whole of an answer that was cut short, so that the history is what was shown; gives it.
    pub(super) fn store_cut_answer(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        call: ModelCall,
        stop_reason: StopReason,
        why: &str,
    ) -> Option<Arc<Message>> {
        let ModelCall { mut answer, model, .. } = call;
        answer.close_blocks(&mut self.context(conversation, now));
        let usage = answer.usage();
        let parts = answer.into_parts();
        if parts.is_empty() {
            return None;
        }
        let calls = tool_calls(&parts);
        let body = assistant_message(model, parts, stop_reason, usage);
        let message = conversation.push(body);
        if !calls.is_empty() {
            let mut batch = Batch::new(calls);
            batch.interrupt(&mut self.context(conversation, now), why);
            if let Some((results, _)) = batch.results(Terminate::All) {
                conversation.push(Body::Tool(ToolMessage { results }));
            }
        }
        Some(message)
    }

    fn take_answer(&mut self, conversation: &mut Conversation, now: Millis, call: ModelCall, reason: StopReason) {
        let ModelCall { mut answer, model, .. } = call;
        answer.close_blocks(&mut self.context(conversation, now));
        let usage = answer.usage();
        // What a hook sent instead of the history says nothing of it.
        if self.plan.messages.is_none() {
            conversation.calibrate(answer.sent_tokens());
        }
        let parts = answer.into_parts();
        let calls = tool_calls(&parts);
        // A provider that pauses in the middle of its own tools wants the answer sent back, and goes on with it.
        let is_paused = reason == StopReason::ToolUse && parts.iter().any(|part| matches!(part, Part::Provider { .. }));
        // Some servers say that the answer ends with calls when it has none: it is the last answer all the same.
        let ends_with_calls = !calls.is_empty() || is_paused;
        let reason = if reason == StopReason::ToolUse && !ends_with_calls { StopReason::Stop } else { reason };
        // A provider refuses a message without content when it is sent back: an empty answer is shown and not kept.
        let is_empty = parts.is_empty();
        let body = assistant_message(model, parts, reason, usage);
        if is_empty {
            let message = Arc::new(Message { id: conversation.ids.message(), body });
            self.finish_step(conversation, now, message, Some(EndReason::Model(reason)));
            return;
        }
        let message = conversation.push(body);
        if calls.is_empty() {
            let end = (!is_paused).then_some(EndReason::Model(reason));
            self.finish_step(conversation, now, message, end);
            return;
        }
        let mut batch = Batch::announced(calls, &mut self.context(conversation, now));
        if matches!(reason, StopReason::Refusal | StopReason::ContentFilter) {
            batch.interrupt(&mut self.context(conversation, now), "Not run, because a filter stopped the answer.");
            if let Some((results, _)) = batch.results(Terminate::All) {
                self.finish_batch(conversation, now, results, Some(EndReason::Model(reason)));
            }
            return;
        }
        self.phase = Phase::Tools { batch, suspension: Suspension::None };
    }

    /// Shows the end of the step, and goes on with what was steered or queued, else with `end` or the next step.
    fn finish_step(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        message: Arc<Message>,
        end: Option<EndReason>,
    ) {
        let usage = self.step_usage;
        self.context(conversation, now).emit(EventKind::StepEnd { message, usage });
        match end {
            Some(reason) => self.end_unless_asked_for_more(conversation, now, reason),
            None => self.phase = Phase::BetweenSteps,
        }
    }

    /// Goes on with what was steered or queued, else ends.
    pub(super) fn end_unless_asked_for_more(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        reason: EndReason,
    ) {
        if conversation.steers.is_empty() && !self.deliver_follow_up(conversation, now) {
            self.conclude(conversation, now, reason);
        } else {
            self.phase = Phase::BetweenSteps;
        }
    }

    fn deliver_steers(&mut self, conversation: &mut Conversation, now: Millis) {
        while let Some(queued) = conversation.steers.next() {
            let message = conversation.push_queued(queued, Origin::Steered);
            let mut context = self.context(conversation, now);
            context.emit(EventKind::SteerDelivered { id: message.id.clone() });
            context.emit(EventKind::MessageAdded(message));
        }
    }

    pub(super) fn deliver_follow_up(&mut self, conversation: &mut Conversation, now: Millis) -> bool {
        let Some(queued) = conversation.follow_ups.next() else { return false };
        let message = conversation.push_queued(queued, Origin::FollowUp);
        self.context(conversation, now).emit(EventKind::MessageAdded(message));
        true
    }
}

fn assistant_message(model: ModelRef, content: Vec<Part>, stop_reason: StopReason, usage: Usage) -> Body {
    Body::Assistant(AssistantMessage { content, model, stop_reason, usage })
}

fn tool_calls(parts: &[Part]) -> Vec<ToolCall> {
    let call = |part: &Part| match part {
        Part::ToolCall(call) => Some(call.clone()),
        _ => None,
    };
    parts.iter().filter_map(call).collect()
}
