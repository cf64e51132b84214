//! Compaction by a model: it is asked to say in short what is left out. What it says is not shown, and where it says nothing,
//! the lines that are made without a model stand in its place.

use std::fmt;
use std::sync::Arc;

use super::answer::Answer;
use super::compaction::{self, Compaction};
use super::context::Context;
use super::conversation::Conversation;
use super::effect::{Effect, ModelCallId};
use super::event::EventKind;
use super::input::InputError;
use super::run::{ModelCall, Phase, Run};
use super::timers::Purpose;
use crate::error::{Error, ErrorKind};
use crate::model::{Message, ModelEvent, ModelRef, ModelRequest, Part, RequestOptions, ToolSpec};
use crate::time::Millis;

/// A model that is asked for a summary.
#[derive(Debug)]
pub(super) struct Summarizing {
    pub(super) call: ModelCall,
    /// The stretch of the history that is left out.
    start: usize,
    end: usize,
    pub(super) next: NextAttempt,
    by_model: &'static dyn ByModel,
}

/// What a run does for a summary by a model. Reached by way of [`Summarizer::MODEL`](super::Summarizer::MODEL) and of the
/// [`Summarizing`] that it begins, so that a program without such summaries links nothing of it.
pub(super) trait ByModel: fmt::Debug + Send + Sync {
    /// Asks the model for a summary.
    ///
    /// # Errors
    ///
    /// Gives the attempt back when there is nothing to leave out.
    fn summarize(
        &self,
        run: &mut Run,
        conversation: &mut Conversation,
        now: Millis,
        keep: u64,
        next: NextAttempt,
    ) -> Result<(), NextAttempt>;

    /// Takes a chunk of the summary.
    fn take(&self, summarizing: &mut Summarizing, events: Vec<ModelEvent>, context: &mut Context<'_>);

    /// The summary is over.
    fn end(
        &self,
        summarizing: Summarizing,
        run: &mut Run,
        conversation: &mut Conversation,
        now: Millis,
        outcome: Result<(), Error>,
    );

    /// The silence timer is due.
    fn silent(&self, run: &mut Run, conversation: &mut Conversation, now: Millis);
}

pub(super) const BY_MODEL: &dyn ByModel = &Asked;

#[derive(Debug)]
struct Asked;

/// The attempt of the step's model call that waits for a compaction.
#[derive(Debug)]
pub(super) struct NextAttempt {
    pub(super) number: u32,
    /// Why the one before failed.
    pub(super) error: Option<Error>,
}

impl Summarizing {
    /// One that was saved: the model is asked again.
    pub(super) fn interrupted(next: NextAttempt) -> Self {
        let call = ModelCall {
            id: ModelCallId(0),
            attempt: 1,
            model: ModelRef::default(),
            answer: Answer::default(),
            last_data: None,
            data_since_timer: false,
        };
        Self { call, start: 0, end: 0, next, by_model: BY_MODEL }
    }
}

impl NextAttempt {
    pub(super) const FIRST: Self = Self { number: 1, error: None };
}

impl Run {
    /// Makes the first attempt of the step's model call, after the compaction by a model that is due.
    pub(super) fn first_attempt(&mut self, conversation: &mut Conversation, now: Millis) {
        if let Some(Compaction { threshold: Some(threshold), keep, summarizer }) = conversation.agent.policy.compaction
            && let Some(model) = summarizer.by_model()
            && conversation.sent_tokens() > threshold
            && conversation.is_due_again(keep)
        {
            if let Err(next) = model.summarize(self, conversation, now, keep, NextAttempt::FIRST) {
                self.go_on(conversation, now, next);
            }
        } else {
            self.prepare_call(conversation, now, 1);
        }
    }

    /// Asks the model for a summary again and then makes this attempt, or makes it at once when there is nothing to leave out.
    pub(super) fn summarize_or_go_on(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        keep: u64,
        next: NextAttempt,
    ) {
        if let Err(next) = BY_MODEL.summarize(self, conversation, now, keep, next) {
            self.go_on(conversation, now, next);
        }
    }

    /// Takes a chunk of the summary.
    ///
    /// # Errors
    ///
    /// `Unexpected` when this is not the call that is waited for.
    pub(super) fn summary_events(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        id: ModelCallId,
        events: Vec<ModelEvent>,
    ) -> Result<(), InputError> {
        let mut summarizing = self.summarizing(id)?;
        summarizing.by_model.take(&mut summarizing, events, &mut self.context(conversation, now));
        self.phase = Phase::Summarizing(summarizing);
        Ok(())
    }

    /// The summary is over.
    ///
    /// # Errors
    ///
    /// `Unexpected` when this is not the call that is waited for.
    pub(super) fn summary_ended(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        id: ModelCallId,
        outcome: Result<(), Error>,
    ) -> Result<(), InputError> {
        let summarizing = self.summarizing(id)?;
        summarizing.by_model.end(*summarizing, self, conversation, now, outcome);
        Ok(())
    }

    /// The silence timer is due while a summary is waited for.
    pub(super) fn summary_is_silent(&mut self, conversation: &mut Conversation, now: Millis) {
        if let Phase::Summarizing(summarizing) = &self.phase {
            summarizing.by_model.silent(self, conversation, now);
        }
    }

    /// Makes the attempt that waited for the compaction.
    pub(super) fn go_on(&mut self, conversation: &mut Conversation, now: Millis, next: NextAttempt) {
        let NextAttempt { number: attempt, error } = next;
        if let Some(error) = error {
            self.context(conversation, now).emit(EventKind::StepRetry { attempt, delay: 0, error, model: None });
        }
        self.prepare_call(conversation, now, attempt);
    }

    fn summarizing(&mut self, id: ModelCallId) -> Result<Box<Summarizing>, InputError> {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Summarizing(summarizing) if summarizing.call.id == id => Ok(summarizing),
            phase => {
                self.phase = phase;
                Err(InputError::Unexpected)
            }
        }
    }
}

impl ByModel for Asked {
    fn summarize(
        &self,
        run: &mut Run,
        conversation: &mut Conversation,
        now: Millis,
        keep: u64,
        next: NextAttempt,
    ) -> Result<(), NextAttempt> {
        let is_worth_it = |(start, end): &(usize, usize)| conversation.sent_of(*start, *end) > MIN_SUMMARIZED_TOKENS;
        let Some((start, end)) = conversation.stretch(keep).filter(is_worth_it) else { return Err(next) };
        let sent = conversation.context();
        let kept = conversation.history.len() - end;
        let body = compaction::question(sent.get(..sent.len().saturating_sub(kept)).unwrap_or_default());
        let message = Arc::new(Message { id: conversation.ids.message(), body });
        let model = conversation.agent.model.clone();
        let request = Arc::new(ModelRequest {
            model: model.clone(),
            instructions: None,
            messages: vec![message],
            tools: Arc::from(Vec::<ToolSpec>::new()),
            options: Arc::new(RequestOptions { max_tokens: Some(MAX_SUMMARY_TOKENS), ..RequestOptions::default() }),
        });
        let id = ModelCallId(conversation.ids.number());
        let first_byte_timeout = conversation.agent.policy.first_byte_timeout;
        let mut context = run.context(conversation, now);
        context.emit(EventKind::CompactionStart);
        context.perform(Effect::CallModel { call: id, request });
        context.set_timer(Purpose::ModelSilence, first_byte_timeout);
        let call = ModelCall {
            id,
            attempt: 1,
            model: model.reference(),
            answer: Answer::of(model),
            last_data: None,
            data_since_timer: false,
        };
        run.phase = Phase::Summarizing(Box::new(Summarizing { call, start, end, next, by_model: BY_MODEL }));
        Ok(())
    }

    fn take(&self, summarizing: &mut Summarizing, events: Vec<ModelEvent>, context: &mut Context<'_>) {
        summarizing.call.last_data = Some(context.now);
        let shown = context.conversation.events.len();
        let mut blocks = 0;
        for event in events {
            summarizing.call.answer.take(event, &mut blocks, context);
        }
        // It is said to the model and not to the user.
        context.conversation.events.truncate(shown);
    }

    fn end(
        &self,
        mut summarizing: Summarizing,
        run: &mut Run,
        conversation: &mut Conversation,
        now: Millis,
        outcome: Result<(), Error>,
    ) {
        let usage = summarizing.call.answer.usage();
        run.usage = run.usage.plus(usage);
        run.step_usage = run.step_usage.plus(usage);
        run.context(conversation, now).clear_timer(&Purpose::ModelSilence);
        let is_whole = summarizing.call.answer.outcome(outcome).is_ok();
        let Summarizing { call, start, end, next, .. } = summarizing;
        let parts = call.answer.into_parts().into_iter().filter(|_| is_whole);
        let text: String =
            parts.filter_map(|part| if let Part::Text { text, .. } = part { Some(text) } else { None }).collect();
        let text = Some(text).filter(|text| !text.trim().is_empty());
        let tokens_before = conversation.sent_tokens();
        if let Some((message, replaced)) = conversation.leave_out(start, end, text) {
            let tokens_after = conversation.sent_tokens();
            let end = EventKind::CompactionEnd { message, replaced, tokens_before, tokens_after };
            run.context(conversation, now).emit(end);
        }
        run.go_on(conversation, now, next);
    }

    fn silent(&self, run: &mut Run, conversation: &mut Conversation, now: Millis) {
        let Phase::Summarizing(summarizing) = &run.phase else { return };
        let (id, last_data) = (summarizing.call.id, summarizing.call.last_data);
        let idle_timeout = conversation.agent.policy.idle_timeout;
        match last_data.map(|last_data| now.since(last_data)) {
            Some(silence) if silence < idle_timeout => {
                run.context(conversation, now).set_timer(Purpose::ModelSilence, idle_timeout - silence);
            }
            _ => {
                run.context(conversation, now).perform(Effect::CancelModel { call: id });
                let error = Error::new(ErrorKind::Timeout, "the model did not write the summary in time");
                // The call was just looked at, so that its end is not unexpected.
                let _ = run.summary_ended(conversation, now, id, Err(error));
            }
        }
    }
}

/// Room for some pages, and little against what is left out.
const MAX_SUMMARY_TOKENS: u64 = 4_000;

/// No summary is much shorter than this.
const MIN_SUMMARIZED_TOKENS: u64 = 100;
