//! The timers of a run: which are set, for when, and what for.

use super::effect::{Effect, TimerId};
use crate::model::CallId;
use crate::time::Millis;

/// What a timer is for. A run has at most one timer of each purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The run has taken too long.
    RunTimeout,
    /// The model has been silent for too long.
    ModelSilence,
    /// The next attempt of a model call is due.
    Retry,
    /// A tool has taken too long.
    Tool(CallId),
    /// A validator or hook has taken too long to answer about this call.
    Hook(CallId),
    /// Nobody has decided about this call in time.
    Approval(CallId),
    /// A hook has taken too long to answer about this step.
    StepHook,
}

/// A timer that the host was asked to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Timer {
    pub(super) id: TimerId,
    pub(super) at: Millis,
    pub(super) purpose: Purpose,
}

/// The timers that are set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Timers {
    pub(super) set: Vec<Timer>,
}

impl Timers {
    /// Sets the timer of this purpose, replacing an earlier one. `fresh` is the id to use when there is none.
    pub(super) fn set(&mut self, purpose: Purpose, at: Millis, fresh: impl FnOnce() -> TimerId) -> Effect {
        let timer = if let Some(timer) = self.set.iter_mut().find(|timer| timer.purpose == purpose) {
            timer.at = at;
            timer.id
        } else {
            let id = fresh();
            self.set.push(Timer { id, at, purpose });
            id
        };
        Effect::SetTimer { timer, at }
    }

    /// Forgets the timer of this purpose.
    pub(super) fn clear(&mut self, purpose: &Purpose) -> Option<Effect> {
        let index = self.set.iter().position(|timer| timer.purpose == *purpose)?;
        Some(Effect::ClearTimer { timer: self.set.remove(index).id })
    }

    /// Takes the timer that the host says is due.
    ///
    /// The host's word counts, not the clock: after a clock jumped back the deadline may look far away, and a timer that
    /// is not taken now would never come again.
    pub(super) fn fired(&mut self, id: TimerId) -> Option<Timer> {
        let index = self.set.iter().position(|timer| timer.id == id)?;
        Some(self.set.remove(index))
    }

    /// When the timer of this purpose is due.
    pub(super) fn deadline(&self, purpose: &Purpose) -> Option<Millis> {
        self.set.iter().find(|timer| timer.purpose == *purpose).map(|timer| timer.at)
    }
}
