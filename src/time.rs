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

    /// The moment as `2015-08-30T12:36:00Z`.
    #[cfg(any(feature = "bedrock", feature = "host"))]
    pub(crate) fn to_rfc3339(self) -> String {
        let seconds = self.0 / 1000;
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        // Counted from 0000-03-01, so that the leap day is the last of its year.
        let days = days + 719_468;
        let era_day = days % 146_097;
        let year_of_era = (era_day - era_day / 1460 + era_day / 36_524 - era_day / 146_096) / 365;
        let day_of_year = era_day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = (month_from_march + 2) % 12 + 1;
        let year = year_of_era + days / 146_097 * 400 + u64::from(month <= 2);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}
