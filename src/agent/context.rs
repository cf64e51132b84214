//! What the parts of a run need to act: the conversation, the run's name and timers, and the time.

use super::conversation::Conversation;
use super::effect::{Effect, TimerId};
use super::event::{Event, EventKind, RunId};
use super::limits::Allowance;
use super::timers::{Purpose, Timers};
use crate::time::Millis;

/// Handed down while one input is worked on.
#[derive(Debug)]
pub(super) struct Context<'run> {
    pub(super) now: Millis,
    pub(super) run_id: &'run RunId,
    pub(super) step: u32,
    /// The only tools of the step, where a hook said so.
    pub(super) active_tools: Option<&'run [String]>,
    /// What is left to the run.
    pub(super) left: Allowance,
    pub(super) timers: &'run mut Timers,
    pub(super) conversation: &'run mut Conversation,
}

impl Context<'_> {
    /// Shows an event.
    pub(super) fn emit(&mut self, kind: EventKind) {
        self.conversation.events.push_back(Event { run_id: self.run_id.clone(), step: self.step, kind });
    }

    /// Asks the host for something.
    pub(super) fn perform(&mut self, effect: Effect) {
        self.conversation.effects.push_back(effect);
    }

    /// Sets the timer of this purpose to go off after this many milliseconds.
    pub(super) fn set_timer(&mut self, purpose: Purpose, delay: u64) {
        let ids = &mut self.conversation.ids;
        let effect = self.timers.set(purpose, self.now.after(delay), || TimerId(ids.number()));
        self.perform(effect);
    }

    /// Forgets the timer of this purpose.
    pub(super) fn clear_timer(&mut self, purpose: &Purpose) {
        if let Some(effect) = self.timers.clear(purpose) {
            self.perform(effect);
        }
    }

    /// Forgets all timers.
    pub(super) fn clear_timers(&mut self) {
        for timer in std::mem::take(&mut self.timers.set) {
            self.perform(Effect::ClearTimer { timer: timer.id });
        }
    }
}
