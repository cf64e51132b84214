//! How a run ends: on its own, aborted, failed or out of time. Always with exactly one `run-end`, and always leaving a
//! history that the next prompt can go on from.

use std::sync::Arc;

use super::conversation::Conversation;
use super::definition::Terminate;
use super::effect::Effect;
use super::event::{EndReason, EventKind, RunEnd};
use super::queue::QueuedMessage;
use super::run::{Phase, Run};
use super::timers::Purpose;
use crate::error::{Error, ErrorKind};
use crate::model::{Body, Message, StopReason, ToolMessage};
use crate::planted::{self, Defect};
use crate::time::Millis;

impl Run {
    /// Ends the run between steps; its end is shown once it is saved.
    pub(super) fn end(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        reason: EndReason,
        error: Option<Error>,
    ) {
        self.end_cut(conversation, now, reason, error, None);
    }

    /// Ends the run within a step, of whose answer this much is kept.
    pub(super) fn end_cut(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        reason: EndReason,
        error: Option<Error>,
        message: Option<Arc<Message>>,
    ) {
        let end = RunEnd { message, ..self.prepare_end(conversation, now, reason, error) };
        self.phase = Phase::Ending { end, seq: conversation.checkpoint() };
    }

    /// The caller stops the run. Its end is shown at once, and nothing after it.
    pub(super) fn abort(&mut self, conversation: &mut Conversation, now: Millis, reason: Option<String>) {
        if !matches!(self.phase, Phase::Ending { .. }) {
            let why = "The run was aborted before this call was done.";
            let message = self.interrupt(conversation, now, StopReason::Aborted, why);
            let error = Error::new(ErrorKind::Aborted, reason.unwrap_or_else(|| "the run was aborted".to_owned()));
            let reason = EndReason::Model(StopReason::Aborted);
            let end = RunEnd { message, ..self.prepare_end(conversation, now, reason, Some(error)) };
            // Asked for and not waited for: without it a later restore would take up a run that was aborted.
            let seq = conversation.checkpoint();
            self.phase = Phase::Ending { end, seq };
        }
        self.say_end(conversation, now);
    }

    /// A checkpoint could not be saved: nothing may go on that a restore would not know of.
    pub(super) fn saving_failed(&mut self, conversation: &mut Conversation, now: Millis, error: Error) {
        let why = "The conversation could not be saved, so the run was stopped.";
        let message = self.interrupt(conversation, now, StopReason::Error, why);
        let kind = if error.kind() == ErrorKind::Conflict { ErrorKind::Conflict } else { ErrorKind::Storage };
        let error = Error::new(kind, format!("the conversation could not be saved: {}", error.message()));
        let reason = EndReason::Model(StopReason::Error);
        let end = RunEnd { message, ..self.prepare_end(conversation, now, reason, Some(error)) };
        self.phase = Phase::Ending { end, seq: 0 };
        self.say_end(conversation, now);
    }

    /// The run has taken as long as it may.
    pub(super) fn time_is_up(&mut self, conversation: &mut Conversation, now: Millis) {
        if matches!(self.phase, Phase::Ending { .. } | Phase::Over) {
            return;
        }
        let limit = conversation.agent.policy.timeout.unwrap_or_default();
        let why = "The run reached its time limit before this call was done.";
        let message = self.interrupt(conversation, now, StopReason::Aborted, why);
        self.context(conversation, now).emit(EventKind::LimitReached { limit: "time" });
        let error = Error::new(ErrorKind::Timeout, format!("the run reached its limit of {limit} ms"));
        self.end_cut(conversation, now, EndReason::Limit, Some(error), message);
    }

    /// Whether the run has taken as long as it may, whatever its timer says: timers of hidden pages come late.
    pub(super) fn is_out_of_time(&self, now: Millis) -> bool {
        self.timers.deadline(&Purpose::RunTimeout).is_some_and(|at| now >= at)
    }

    /// Shows the end.
    pub(super) fn say_end(&mut self, conversation: &mut Conversation, now: Millis) {
        if let Phase::Ending { end, .. } = std::mem::replace(&mut self.phase, Phase::Over) {
            if planted::is(Defect::EndsTwice) {
                self.context(conversation, now).emit(EventKind::RunEnd(end.clone()));
            }
            self.context(conversation, now).emit(EventKind::RunEnd(end));
        }
    }

    /// Stops what is at work and closes what is open, in the history and in the events. Gives the answer that was cut short,
    /// if anything of it is kept.
    fn interrupt(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        stop_reason: StopReason,
        why: &str,
    ) -> Option<Arc<Message>> {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Calling(call) => {
                self.context(conversation, now).perform(Effect::CancelModel { call: call.id });
                self.usage = self.usage.plus(call.answer.usage());
                self.store_cut_answer(conversation, now, *call, stop_reason, why)
            }
            Phase::Summarizing(summarizing) => {
                self.context(conversation, now).perform(Effect::CancelModel { call: summarizing.call.id });
                self.usage = self.usage.plus(summarizing.call.answer.usage());
                None
            }
            Phase::Tools { mut batch, .. } => {
                let message = conversation.history.last().cloned();
                batch.interrupt(&mut self.context(conversation, now), why);
                self.usage = self.usage.plus(batch.spent_within());
                if let Some((results, _)) = batch.results(Terminate::All)
                    && !planted::is(Defect::LeavesCallsUnanswered)
                {
                    conversation.push(Body::Tool(ToolMessage { results }));
                }
                message
            }
            Phase::BetweenSteps
            | Phase::Saving { .. }
            | Phase::Preparing { .. }
            | Phase::Waiting { .. }
            | Phase::ValidatingOutput { .. }
            | Phase::Ending { .. }
            | Phase::Over => None,
        }
    }

    fn prepare_end(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        reason: EndReason,
        error: Option<Error>,
    ) -> RunEnd {
        let text = last_text(conversation);
        let usage = self.usage;
        let error = error.or_else(|| self.missing_output(reason));
        let output = self.take_output();
        let mut context = self.context(conversation, now);
        context.clear_timers();
        while let Some(QueuedMessage { id, .. }) = context.conversation.steers.next() {
            context.emit(EventKind::SteerDropped { id });
        }
        RunEnd { reason, usage, error, text, output, message: None }
    }
}

/// The text of the last answer since the user spoke.
fn last_text(conversation: &Conversation) -> String {
    let not_user = |message: &&Arc<Message>| !matches!(message.body, Body::User(_));
    let text = conversation.history.iter().rev().take_while(not_user).find_map(|message| match &message.body {
        Body::Assistant(assistant) => Some(assistant.text()),
        _ => None,
    });
    text.unwrap_or_default()
}
