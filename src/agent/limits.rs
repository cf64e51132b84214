//! What keeps a run within bounds: limits of steps and tokens, circles, and histories that are too long.

use super::compaction::{Compaction, Summarizer};
use super::conversation::Conversation;
use super::definition::Policy;
use super::event::{EndReason, EventKind};
use super::repetition;
use super::run::Run;
use super::summarizing::NextAttempt;
use crate::model::{Dollars, Origin, Usage};
use crate::time::Millis;

/// What is left of the limits of tokens and cost; `None` where there is no such limit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowance {
    pub(super) tokens: Option<u64>,
    pub(super) cost: Option<Dollars>,
}

impl Allowance {
    /// What is left after this.
    pub(super) fn without(self, spent: &Usage) -> Self {
        Self {
            tokens: self.tokens.map(|left| left.saturating_sub(spent.total())),
            cost: self.cost.map(|left| left.minus(spent.cost.unwrap_or_default())),
        }
    }
}

impl Run {
    pub(super) fn compact_beyond_threshold(&mut self, conversation: &mut Conversation, now: Millis) {
        // What a model is asked for comes later, once the step is saved.
        if let Some(Compaction { threshold: Some(threshold), keep, summarizer }) = conversation.agent.policy.compaction
            && summarizer == Summarizer::LINES
            && conversation.sent_tokens() > threshold
            && conversation.is_due_again(keep)
        {
            self.compact(conversation, now, keep);
        }
    }

    /// Makes the step shorter after the provider called it too long. What stays is at most half of what was sent, since
    /// the model's window may be smaller than what the policy would keep.
    ///
    /// # Errors
    ///
    /// Gives the attempt back when the step cannot be made shorter.
    pub(super) fn shorten(
        &mut self,
        conversation: &mut Conversation,
        now: Millis,
        next: NextAttempt,
    ) -> Result<(), NextAttempt> {
        let Some(Compaction { summarizer, .. }) = conversation.agent.policy.compaction else { return Err(next) };
        if std::mem::replace(&mut self.shortened, true) {
            return Err(next);
        }
        self.plan.messages = None;
        let keep = Self::kept_tokens(conversation, &next);
        match summarizer.by_model() {
            Some(model) => model.summarize(self, conversation, now, keep, next),
            None if self.compact(conversation, now, keep) => {
                self.go_on(conversation, now, next);
                Ok(())
            }
            None => Err(next),
        }
    }

    /// How many tokens stay before this attempt.
    pub(super) fn kept_tokens(conversation: &Conversation, next: &NextAttempt) -> u64 {
        let keep = conversation.agent.policy.compaction.unwrap_or_default().keep;
        if next.number > 1 { keep.min(conversation.message_tokens() / 2) } else { keep }
    }

    fn compact(&mut self, conversation: &mut Conversation, now: Millis, keep: u64) -> bool {
        let tokens_before = conversation.sent_tokens();
        let stretch = conversation.stretch(keep).filter(|(start, end)| conversation.is_shorter_by_lines(*start, *end));
        let left_out = stretch.and_then(|(start, end)| conversation.leave_out(start, end, None));
        let Some((message, replaced)) = left_out else { return false };
        let tokens_after = conversation.sent_tokens();
        let mut context = self.context(conversation, now);
        context.emit(EventKind::CompactionStart);
        context.emit(EventKind::CompactionEnd { message, replaced, tokens_before, tokens_after });
        true
    }

    /// Tells a model that goes round in a circle, and ends the run if it goes on. A message of the user breaks a circle.
    pub(super) fn break_circle(&mut self, conversation: &mut Conversation, now: Millis) {
        let limit = conversation.agent.policy.max_identical_steps;
        if limit == 0 || !conversation.steers.is_empty() {
            return;
        }
        let count = repetition::identical_steps(&conversation.history, limit.saturating_add(1));
        if count == limit {
            let message = conversation.push_user(repetition::nudge(count), Origin::Nudge);
            self.context(conversation, now).emit(EventKind::MessageAdded(message));
        } else if count > limit {
            self.context(conversation, now).emit(EventKind::LimitReached { limit: "loop" });
            self.end(conversation, now, EndReason::Limit, None);
        }
    }

    /// What is left to the run by its own limits and those of the run outside, without what sub-agents at work have taken.
    pub(super) fn left(&self, conversation: &Conversation) -> Allowance {
        let Policy { max_tokens, max_cost, .. } = conversation.agent.policy;
        let own = Allowance { tokens: max_tokens, cost: max_cost }.without(&self.usage);
        let outer = conversation.allowance;
        Allowance {
            tokens: own.tokens.into_iter().chain(outer.tokens).min(),
            cost: own.cost.into_iter().chain(outer.cost).min(),
        }
    }

    /// The limit that forbids another step.
    pub(super) fn limit_reached(&self, conversation: &Conversation) -> Option<&'static str> {
        let policy = &conversation.agent.policy;
        if self.steps >= policy.max_steps {
            Some("steps")
        } else if self.left(conversation).tokens == Some(0) {
            Some("tokens")
        } else if self.left(conversation).cost == Some(Dollars::ZERO) {
            Some("cost")
        } else {
            None
        }
    }
}
