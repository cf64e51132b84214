//! Time as the machines see it: a number that the caller passes in.

use serde::{Deserialize, Serialize};

/// A moment in milliseconds of Unix time.
///
/// Deadlines are stored in snapshots and survive into another process, so they are wall-clock moments and not readings
/// of a monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// This moment plus a number of milliseconds; stays at the largest moment instead of overflowing.
    #[must_use]
    pub const fn after(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }

    /// How many milliseconds lie between `earlier` and this moment; 0 when the clock jumped back.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
